"""How operations are issued: by torch.distributed's functions, or straight at the process group.

`DirectCalls` does once, when a plan is bound, what the public functions do in every call: check
the arguments, look up the group and fill in the options. Both end in the same method of the
process group, so that the dispatcher, Flight Recorder, profilers, timeouts and the debug wrappers
see the same calls. `calls_on` takes the direct way where this torch has the methods and options
that it needs, and the public one elsewhere.
"""

from __future__ import annotations

import re
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_dist: Any = dist  # torch's collectives have no complete types
_c10d: Any = torch._C._distributed_c10d  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]

# torch 2.13 warns of the older names, which do the same.
NEWER = {
    "all_gather_into_tensor": "all_gather_single",
    "reduce_scatter_tensor": "reduce_scatter_single",
}

_NEEDED = {
    "AllreduceOptions": ("reduceOp", "asyncOp"),
    "ReduceOptions": ("reduceOp", "rootRank", "asyncOp"),
    "BroadcastOptions": ("rootRank", "rootTensor", "asyncOp"),
    "ScatterOptions": ("rootRank", "asyncOp"),
    "GatherOptions": ("rootRank", "asyncOp"),
    "AllgatherOptions": ("asyncOp",),
    "ReduceScatterOptions": ("reduceOp", "asyncOp"),
    "AllToAllOptions": ("asyncOp",),
    "BarrierOptions": ("asyncOp", "device"),
}
# How many arguments, and the name of the last.
_METHODS = {
    **dict.fromkeys(("allreduce", "reduce", "broadcast"), (2, "opts")),
    **dict.fromkeys(("scatter", "gather", "allgather", "all_gather_single"), (3, "opts")),
    **dict.fromkeys(("reduce_scatter", "reduce_scatter_single", "alltoall"), (3, "opts")),
    "all_to_all_single": (5, "opts"),
    **dict.fromkeys(("send", "recv"), (3, "tag")),
    "barrier": (1, "opts"),
}


@record
class Call:
    """An operation ready to go: `start` returns a work to be waited for, `run` waits itself.

    `message` is the same as an entry of `batch_isend_irecv`, for sends and recvs.
    """

    start: Callable[[], Any]
    run: Callable[[], Any]
    message: dist.P2POp | None = None


def waited(start: Callable[[], Any]) -> Callable[[], None]:
    """`start`, and wait for what it returns."""

    def run() -> None:
        work = start()
        if work is not None:
            work.wait()

    return run


def calls_on(group: dist.ProcessGroup, *, all_wait: bool = False) -> PublicCalls:
    """The fastest way to issue operations on a group that this torch allows.

    `all_wait` says that no rank of the group starts a collective without waiting for it.
    """
    bound: Callable[..., PublicCalls] | None = getattr(group, "bound_calls", None)
    if bound is not None:  # a group of ours
        return bound(all_wait=all_wait)
    return DirectCalls(group) if has_direct_calls(group) else PublicCalls(group)


def has_direct_calls(group: dist.ProcessGroup) -> bool:
    """Whether the methods and options that `DirectCalls` needs are there, as torch 2.13 has them.

    A process group of another class may override methods that torch calls otherwise.
    """
    return type(group) is dist.ProcessGroup and _has_surface()


@cache
def _has_surface() -> bool:
    """Whether torch's own class and options have what is needed; signatures are in docstrings."""
    if not all(_takes(name, *last) for name, last in _METHODS.items()):
        return False
    options = {name: getattr(_c10d, name, None) for name in _NEEDED}
    return all(
        known is not None and all(hasattr(known(), field) for field in _NEEDED[name])
        for name, known in options.items()
    )


def _takes(method: str, count: int, last: str) -> bool:
    signatures = str(getattr(getattr(dist.ProcessGroup, method, None), "__doc__", "")).splitlines()
    taken = [re.findall(r", (\w+): ", line) for line in signatures if f"{method}(self: " in line]
    return any(len(names) == count and names[-1] == last for names in taken)


class PublicCalls:
    """Operations as a program writes them, with torch.distributed's functions."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self.group = group
        self._direct: Any = group  # whose types are not complete

    def send(self, tensor: torch.Tensor, dst: int, tag: int) -> Call:
        """isend, with `dst` a rank of the group."""
        start = partial(dist.isend, tensor, group=self.group, tag=tag, group_dst=dst)
        return Call(start, waited(start), self._message(dist.isend, tensor, dst, tag))

    def recv(self, tensor: torch.Tensor, src: int, tag: int) -> Call:
        """irecv, with `src` a rank of the group."""
        start = partial(dist.irecv, tensor, group=self.group, tag=tag, group_src=src)
        return Call(start, waited(start), self._message(dist.irecv, tensor, src, tag))

    def _message(self, function: Any, tensor: torch.Tensor, peer: int, tag: int) -> dist.P2POp:
        return dist.P2POp(function, tensor, group=self.group, tag=tag, group_peer=peer)

    def collective(self, name: str, *tensors: Any, **arguments: Any) -> Call:
        """A collective by torch's name, with torch's arguments; roots are ranks of the group."""
        newer = NEWER.get(name, name)
        function = getattr(_dist, newer if hasattr(_dist, newer) else name)
        start = partial(function, *tensors, group=self.group, async_op=True, **arguments)
        return Call(start, partial(function, *tensors, group=self.group, **arguments))


class DirectCalls(PublicCalls):
    """The same calls with their checks and options done; what it has no short way for is public."""

    def send(self, tensor: torch.Tensor, dst: int, tag: int) -> Call:
        call = super().send(tensor, dst, tag)
        if not _plain([tensor]):
            return call
        send, tensors = self._direct.send, [tensor]
        start = partial(send, tensors, dst, tag)
        return Call(start, lambda: send(tensors, dst, tag).wait(), call.message)

    def recv(self, tensor: torch.Tensor, src: int, tag: int) -> Call:
        call = super().recv(tensor, src, tag)
        if not _plain([tensor]):
            return call
        recv, tensors = self._direct.recv, [tensor]
        start = partial(recv, tensors, src, tag)
        return Call(start, lambda: recv(tensors, src, tag).wait(), call.message)

    def collective(self, name: str, *tensors: Any, **arguments: Any) -> Call:
        prepare = getattr(self, f"_{NEWER.get(name, name)}", None)
        flat = [t for given in tensors for t in (given if isinstance(given, list) else [given])]  # pyright: ignore[reportUnknownVariableType]
        if prepare is None or not _plain(flat):  # pyright: ignore[reportUnknownArgumentType]
            return super().collective(name, *tensors, **arguments)
        return prepare(*tensors, **arguments)

    def _call(self, method: Any, *arguments: Any, options: str, **fields: Any) -> Call:
        later, now = (getattr(_c10d, options)() for _ in range(2))
        for chosen, asynchronous in ((later, True), (now, False)):
            chosen.asyncOp = asynchronous
            for field, value in fields.items():
                setattr(chosen, field, value)
        start = partial(method, *arguments, later)
        if len(arguments) == 1:  # as in most cases; a call with its arguments spelled out is faster
            (data,) = arguments
            return Call(start, lambda: method(data, now).wait())
        if len(arguments) == 2:
            output, data = arguments
            return Call(start, lambda: method(output, data, now).wait())
        run = partial(method, *arguments, now)
        return Call(start, lambda: run().wait())

    def _barrier(self) -> Call:
        device = _device_of_barriers(self.group)
        if device is None:
            return super().collective("barrier")
        return self._call(self._direct.barrier, options="BarrierOptions", device=device)

    def _all_reduce(self, tensor: torch.Tensor, *, op: Any) -> Call:
        return self._call(self._direct.allreduce, [tensor], options="AllreduceOptions", reduceOp=op)

    def _reduce(self, tensor: torch.Tensor, *, op: Any, group_dst: int) -> Call:
        fields = {"reduceOp": op, "rootRank": group_dst}
        return self._call(self._direct.reduce, [tensor], options="ReduceOptions", **fields)

    def _broadcast(self, tensor: torch.Tensor, *, group_src: int) -> Call:
        fields = {"rootRank": group_src, "rootTensor": 0}
        return self._call(self._direct.broadcast, [tensor], options="BroadcastOptions", **fields)

    def _scatter(self, tensor: torch.Tensor, parts: list[torch.Tensor], *, group_src: int) -> Call:
        inputs = [parts] if self.group.rank() == group_src else []
        arguments = ([tensor], inputs)
        return self._call(
            self._direct.scatter, *arguments, options="ScatterOptions", rootRank=group_src
        )

    def _gather(self, tensor: torch.Tensor, parts: list[torch.Tensor], *, group_dst: int) -> Call:
        outputs = [parts] if self.group.rank() == group_dst else []
        arguments = (outputs, [tensor])
        return self._call(
            self._direct.gather, *arguments, options="GatherOptions", rootRank=group_dst
        )

    def _all_gather(self, outputs: list[torch.Tensor], tensor: torch.Tensor) -> Call:
        return self._call(self._direct.allgather, [outputs], [tensor], options="AllgatherOptions")

    def _all_gather_single(self, output: torch.Tensor, tensor: torch.Tensor) -> Call:
        method = self._direct.all_gather_single
        return self._call(method, output, tensor, options="AllgatherOptions")

    def _reduce_scatter(self, output: torch.Tensor, inputs: list[torch.Tensor], *, op: Any) -> Call:
        arguments = ([output], [inputs])
        return self._call(
            self._direct.reduce_scatter, *arguments, options="ReduceScatterOptions", reduceOp=op
        )

    def _reduce_scatter_single(
        self, output: torch.Tensor, tensor: torch.Tensor, *, op: Any
    ) -> Call:
        method = self._direct.reduce_scatter_single
        return self._call(method, output, tensor, options="ReduceScatterOptions", reduceOp=op)

    def _all_to_all(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor]) -> Call:
        return self._call(self._direct.alltoall, outputs, inputs, options="AllToAllOptions")

    def _all_to_all_single(
        self,
        output: torch.Tensor,
        tensor: torch.Tensor,
        *,
        output_split_sizes: Sequence[int] = (),
        input_split_sizes: Sequence[int] = (),
    ) -> Call:
        arguments = (output, tensor, output_split_sizes, input_split_sizes)
        return self._call(self._direct.all_to_all_single, *arguments, options="AllToAllOptions")


def _device_of_barriers(group: dist.ProcessGroup) -> torch.device | None:
    """What `dist.barrier` takes without being told, or None where it looks at the current device.

    NCCL needs one, as its barrier is an all_reduce.
    """
    bound: torch.device | None = getattr(group, "bound_device_id", None)
    return torch.device("cpu") if bound is None and not torch.accelerator.is_available() else bound


def _plain(tensors: list[torch.Tensor]) -> bool:
    """Whether torch's functions would do nothing to the tensors (complex ones become real)."""
    return all(
        type(tensor) is torch.Tensor and not tensor.is_complex() and not _is_float8(tensor.dtype)
        for tensor in tensors
    )


def _is_float8(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point and dtype.itemsize == 1
