"""Communication on torch.distributed: each row as a call with everything but its start decided.

The public functions of torch.distributed are used throughout, so that Flight Recorder, profilers
and debug wrappers see what a hand-written program would show them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from commlang.operations import Kind, ReduceOp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commlang.execute.memory import Memory
    from commlang.expand.values import Op
    from commlang.program import Program


@dataclass(frozen=True, slots=True)
class Call:
    """An operation ready to go: `start` returns its work, which is then waited for."""

    start: Callable[[], Any]
    message: dist.P2POp | None = None
    """The same as an entry of `batch_isend_irecv`, for sends and recvs."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A work with something left to do once the communication is over."""

    work: Any
    after: Callable[[], Any]

    def wait(self) -> None:
        """Wait for the communication, then do the rest."""
        self.work.wait()
        self.after()


_dist: Any = dist  # torch's collectives have no complete types

# torch 2.13 warns of the older names, which do the same.
_NEWER = {
    "all_gather_into_tensor": "all_gather_single",
    "reduce_scatter_tensor": "reduce_scatter_single",
}


def _function(name: str) -> Callable[..., Any]:
    newer = _NEWER.get(name, name)
    return getattr(dist, newer if hasattr(dist, newer) else name)


def reduce_op(op: Op | None) -> Any:
    """torch's object for a reduce op."""
    if op is None or op.op is ReduceOp.SUM:
        return dist.ReduceOp.SUM
    if op.op is ReduceOp.PREMUL_SUM:
        assert op.factor is not None
        return dist._make_nccl_premul_sum(float(op.factor))  # pyright: ignore
    return getattr(dist.ReduceOp, op.op.name)


def bind_communication(
    program: Program, row: int, memory: Memory, group: dist.ProcessGroup, backend: str
) -> Call:
    """The call of a send, a recv or a collective."""
    site = program.site_of(row)
    views = memory.views(row)
    gid, peer, tag = (int(c[row]) for c in (program.group, program.peer, program.tag))
    place = int(program.groups.position(gid, peer)) if peer >= 0 else -1
    if site.kind.is_message:
        return _message(site.kind, views[0], place, tag, group)
    start = _start(site.kind, views, place, _Setting(site.op, group, backend, site.name))
    return Call(start)


def _message(
    kind: Kind, tensor: torch.Tensor, place: int, tag: int, group: dist.ProcessGroup
) -> Call:
    if kind is Kind.SEND:
        start = partial(dist.isend, tensor, group=group, tag=tag, group_dst=place)
        return Call(start, dist.P2POp(dist.isend, tensor, group=group, tag=tag, group_peer=place))
    start = partial(dist.irecv, tensor, group=group, tag=tag, group_src=place)
    return Call(start, dist.P2POp(dist.irecv, tensor, group=group, tag=tag, group_peer=place))


@dataclass(frozen=True, slots=True)
class _Setting:
    op: Op | None
    group: dist.ProcessGroup
    backend: str
    name: str

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[[], Any]:
        return partial(function, *args, group=self.group, async_op=True, **kwargs)

    def reduce(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[[], Any]:
        return self.call(function, *args, op=reduce_op(self.op), **kwargs)


def _start(
    kind: Kind, views: list[torch.Tensor], place: int, setting: _Setting
) -> Callable[[], Any]:
    match kind:
        case Kind.ALL_REDUCE:
            return setting.reduce(_dist.all_reduce, views[0])
        case Kind.REDUCE:
            return setting.reduce(_dist.reduce, views[0], group_dst=place)
        case Kind.BROADCAST:
            return setting.call(_dist.broadcast, views[0], group_src=place)
        case Kind.SCATTER:
            return setting.call(_dist.scatter, views[0], views[1:] or None, group_src=place)
        case Kind.GATHER:
            return setting.call(_dist.gather, views[-1], views[:-1] or None, group_dst=place)
        case Kind.ALL_GATHER:
            return _all_gather(views[:-1], views[-1], setting)
        case Kind.REDUCE_SCATTER:
            return _reduce_scatter(views[0], views[1:], setting)
        case Kind.ALL_TO_ALL:
            return _all_to_all(views, setting)
        case _:
            return setting.call(_dist.barrier)


def _even(views: Sequence[torch.Tensor]) -> bool:
    return len({view.numel() for view in views}) <= 1


def _all_gather(
    outputs: list[torch.Tensor], tensor: torch.Tensor, setting: _Setting
) -> Callable[[], Any]:
    if setting.name != "all_gather":
        return setting.call(_function(setting.name), outputs[0], tensor)
    if _even(outputs) or "nccl" in setting.backend:
        return setting.call(_dist.all_gather, outputs, tensor)
    return partial(_padded_all_gather, outputs, tensor, setting)


def _padded_all_gather(
    outputs: list[torch.Tensor], tensor: torch.Tensor, setting: _Setting
) -> Finished:
    """gloo refuses uneven lists: gather entries of the longest length and drop the padding."""
    longest = max(output.numel() for output in outputs)
    padded = tensor.new_zeros(longest)
    padded[: tensor.numel()] = tensor
    rows = tensor.new_empty((len(outputs), longest))
    gather = _function("all_gather_single")
    work = gather(rows.view(-1), padded, group=setting.group, async_op=True)

    def unpack() -> None:
        for output, row in zip(outputs, rows, strict=True):
            output.copy_(row[: output.numel()])

    return Finished(work, unpack)


def _reduce_scatter(
    output: torch.Tensor, inputs: list[torch.Tensor], setting: _Setting
) -> Callable[[], Any]:
    if setting.name != "reduce_scatter":
        return setting.reduce(_function(setting.name), output, inputs[0])
    if _even(inputs) or "nccl" in setting.backend:
        return setting.reduce(_dist.reduce_scatter, output, inputs)
    return partial(_summed_reduce_scatter, output, inputs, setting)


def _summed_reduce_scatter(
    output: torch.Tensor, inputs: list[torch.Tensor], setting: _Setting
) -> Finished:
    """gloo refuses uneven lists: reduce all of it, as gloo does for even ones, and keep a part."""
    flat = torch.cat(inputs)
    start = sum(t.numel() for t in inputs[: dist.get_rank(setting.group)])
    op = reduce_op(setting.op)
    work = _dist.all_reduce(flat, op=op, group=setting.group, async_op=True)
    return Finished(work, lambda: output.copy_(flat[start : start + output.numel()]))


def _all_to_all(views: list[torch.Tensor], setting: _Setting) -> Callable[[], Any]:
    """Lists, splits or two flat tensors; gloo does lists that are uneven only with splits."""
    if len(views) == 2 and setting.name == "all_to_all_single":
        return setting.call(_dist.all_to_all_single, views[0], views[1])
    half = len(views) // 2
    outputs, inputs = views[:half], views[half:]
    if setting.name == "all_to_all" and (_even(views) or "nccl" in setting.backend):
        return setting.call(_dist.all_to_all, outputs, inputs)
    return partial(_split_all_to_all, outputs, inputs, setting)


def _split_all_to_all(
    outputs: list[torch.Tensor], inputs: list[torch.Tensor], setting: _Setting
) -> Finished:
    received = outputs[0].new_empty(sum(t.numel() for t in outputs))
    work = _dist.all_to_all_single(
        received,
        torch.cat(inputs),
        [t.numel() for t in outputs],
        [t.numel() for t in inputs],
        group=setting.group,
        async_op=True,
    )

    def unpack() -> None:
        for output, part in zip(
            outputs, torch.split(received, [t.numel() for t in outputs]), strict=True
        ):
            output.copy_(part)

    return Finished(work, unpack)
