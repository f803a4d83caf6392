"""Patterns in the place of DDP's and FSDP2's own communication."""

from __future__ import annotations

import contextlib
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

import torch
import torch.distributed as dist
from torch.distributed.fsdp._fully_shard._fsdp_api import AllGather, ReduceScatter
from torch.distributed.fsdp._fully_shard._fsdp_collectives import DefaultAllocMixin

from commlang.errors import UsageError
from commlang.execute.agreement import Agreement
from commlang.execute.communicators import device_of, make_group, timeout_of
from commlang.execute.executor import Executor
from commlang.execute.meshes import group_of
from commlang.execute.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from commlang.execute.meshes import Where
    from commlang.plan import Plan


class Pattern(Protocol):
    """What a hook needs of a `commlang.Pattern`."""

    @property
    def name(self) -> str: ...
    @property
    def tensors(self) -> list[str]: ...
    @property
    def parameters(self) -> list[str]: ...
    def plan(self, world: int, /, *, tensors: Any, schedule: Any, **values: Any) -> Plan: ...


_OPS = ("sum", "avg", "product", "min", "max")


class _Closing:
    """A context manager that closes itself."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        raise NotImplementedError


class _Bound:
    """One pattern on one group, for tensors of one shape and dtype: planned and opened once."""

    def __init__(
        self,
        pattern: Pattern,
        group: dist.ProcessGroup,
        tensors: dict[str, torch.Tensor],
        values: dict[str, Any],
    ) -> None:
        size = dist.get_world_size(group)
        plan = pattern.plan(size, tensors=tensors, schedule="overlap", **values)
        device = next(iter(tensors.values())).device
        self.fits = {name: (t.dtype, t.shape) for name, t in tensors.items()}
        self._stack = contextlib.ExitStack()
        self.executor = self._stack.enter_context(Executor(plan, group=group, device=device))

    def close(self) -> None:
        self._stack.close()


def ddp_hook(
    pattern: Pattern,
    *,
    process_group: Where | None = None,
    average: bool = True,
    **values: Any,
) -> DDPHook:
    """A communication hook for DistributedDataParallel that runs a pattern on each bucket.

        with commlang.ddp_hook(commlang.load("ring_all_reduce")) as hook:
            model.register_comm_hook(None, hook)
            train(model)

    The pattern has one tensor, which ends as the sum over all ranks; gradients are divided by the
    number of ranks first, as DDP does itself, unless `average` is false. `values` are further
    parameters. Each bucket is planned when it comes first, and again if DDP rebuilds it with
    another size. Buckets run one after the other, in a thread, beside the backward pass.

    The ranks are those of `process_group` (the default group's), which may be a DeviceMesh, such
    as the `mesh["dp"]` that DDP was given. All of them make the hook at the same time: it makes
    groups of its own, also for the axes of a mesh, so that its operations never meet those of DDP
    itself or of the layers whose backward pass goes on beside it.

    Raises UsageError for a pattern that has not one tensor.
    """
    return DDPHook(pattern, process_group, average, values)


class DDPHook(_Closing):
    """What `ddp_hook` makes; closing it is for all ranks, while the process group is there."""

    def __init__(
        self,
        pattern: Pattern,
        process_group: Where | None,
        average: bool,
        values: dict[str, Any],
    ) -> None:
        (self._tensor,) = _tensors(pattern, 1, "a bucket of gradients is one")
        self.__name__ = self.__qualname__ = f"commlang.ddp_hook({pattern.name})"  # DDP logs it
        # DDP takes only its own types, or none, and those here are texts.
        names = ("state", "bucket")
        self.__signature__ = Signature(
            [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD) for n in names]
        )
        self._pattern, self._values = pattern, values
        group = group_of(process_group or cast("dist.ProcessGroup", dist.group.WORLD))
        self._group: Any = _own(group, pattern.name)
        self._factor = 1 / dist.get_world_size(group) if average else 1.0
        self._bound: dict[int, _Bound] = {}
        self._worker: Worker | None = None

    def __call__(self, state: object, bucket: Any) -> torch.futures.Future[Any]:
        """As DDP calls it with a GradBucket: the future of its buffer, reduced in place."""
        buffer, index = bucket.buffer(), bucket.index()
        self._worker = self._worker or Worker(buffer.device)
        return self._worker.submit(lambda: self._run(index, buffer)).get_future()

    def _run(self, index: int, buffer: torch.Tensor) -> torch.Tensor:
        bound, tensors = self._bound.get(index), {self._tensor: buffer}
        if bound is None or bound.fits != {self._tensor: (buffer.dtype, buffer.shape)}:
            if bound is not None:  # DDP has rebuilt its buckets, on all ranks alike
                bound.close()
            bound = self._bound[index] = _Bound(self._pattern, self._group, tensors, self._values)
        if self._factor != 1:
            buffer.mul_(self._factor)
        bound.executor.run(**tensors)
        return buffer

    def close(self) -> None:
        """Leave the group; all ranks do so, and train with this hook no more."""
        if self._worker is not None:
            self._worker.close()
        for bound in self._bound.values():
            bound.close()
        self._bound.clear()
        if self._group is not None:
            dist.destroy_process_group(self._group)
            self._group = None


def _own(group: dist.ProcessGroup, label: str) -> dist.ProcessGroup:
    """Another group of the same ranks."""
    timeout = timeout_of(group, device_of(group))
    name = f"commlang/{group.group_name}/{Agreement(group, timeout).turn}/own"
    return make_group(group, dist.get_process_group_ranks(group), label, name, timeout)


def fsdp_comms(all_gather: Pattern, reduce_scatter: Pattern, **values: Any) -> FSDPComms:
    """Patterns for FSDP2: objects for set_custom_all_gather and set_custom_reduce_scatter.

        with commlang.fsdp_comms(load("ring_all_gather"), load("ring_reduce_scatter")) as comms:
            model.set_custom_all_gather(comms.all_gather)
            model.set_custom_reduce_scatter(comms.reduce_scatter)

    Each pattern has two flat tensors, first what is written, then what is read, as torch's
    `all_gather_into_tensor` and `reduce_scatter_tensor` do. For a mean the pattern sums, the sum
    is divided; another op is given to the pattern's parameter `op`. Plans are made when
    sizes, dtypes or groups come first, on all ranks alike; `values` are further parameters of both
    patterns.

    Raises UsageError for a pattern that has not two tensors, or no `op` where one is needed.
    """
    return FSDPComms(all_gather, reduce_scatter, values)


class FSDPComms(_Closing):
    """What `fsdp_comms` makes; closing it is for all ranks, while the process group is there."""

    def __init__(
        self, all_gather: Pattern, reduce_scatter: Pattern, values: dict[str, Any]
    ) -> None:
        self._comms = [_Comm(pattern, values) for pattern in (all_gather, reduce_scatter)]
        self.all_gather = _AllGather(self._comms[0])
        self.reduce_scatter = _ReduceScatter(self._comms[1])

    def close(self) -> None:
        """Leave the groups; all ranks do so, and train with these no more."""
        for comm in self._comms:
            comm.close()


class _Comm:
    """A pattern with an output and an input, run on whatever group and sizes come."""

    def __init__(self, pattern: Pattern, values: dict[str, Any]) -> None:
        self._pattern = pattern
        self._values = {n: v for n, v in values.items() if n in pattern.parameters}
        self._names = _tensors(pattern, 2, "what is written and what is read")
        self._plans: dict[object, _Bound] = {}

    def run(
        self, tensors: Sequence[torch.Tensor], group: dist.ProcessGroup, op: str | None = None
    ) -> None:
        given = dict(zip(self._names, tensors, strict=True))
        values = dict(self._values)
        mean, op = op == "avg", "sum" if op == "avg" else op
        if op is not None and "op" in self._pattern.parameters:
            values["op"] = op
        elif op not in (None, "sum"):
            raise UsageError(
                f"FSDP reduces with {op} here, and `{self._pattern.name}` has no parameter `op`"
            )
        sizes = tuple((t.dtype, t.shape) for t in tensors)
        key = (tuple(dist.get_process_group_ranks(group)), sizes, op)
        if key not in self._plans:
            self._plans[key] = _Bound(self._pattern, group, given, values)
        executor = self._plans[key].executor
        executor.run(**given)
        executor.release()  # FSDP frees what it has gathered
        if mean:
            tensors[0].div_(dist.get_world_size(group))

    def close(self) -> None:
        for bound in self._plans.values():
            bound.close()
        self._plans.clear()


class _AllGather(DefaultAllocMixin, AllGather):
    def __init__(self, comm: _Comm) -> None:
        self._comm = comm

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        async_op: bool = False,
    ) -> None:
        # FSDP takes None for done; on CUDA it has chosen the stream, and orders others by events.
        # Its input lies in its place in the output, where the pattern may write before it reads.
        self._comm.run([output_tensor, input_tensor.clone()], group)


class _ReduceScatter(DefaultAllocMixin, ReduceScatter):
    def __init__(self, comm: _Comm) -> None:
        self._comm = comm

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        op: Any,
        async_op: bool = False,
    ) -> None:
        name = next((name for name in _OPS if op == getattr(dist.ReduceOp, name.upper())), None)
        if name is None:
            raise UsageError(f"no pattern reduces with {op}")
        self._comm.run([output_tensor, input_tensor], group, name)


def _tensors(pattern: Pattern, count: int, why: str) -> list[str]:
    names = pattern.tensors
    if len(names) != count:
        have = ", ".join(names) or "none"
        raise UsageError(f"`{pattern.name}` has the tensors {have}; it needs {count}: {why}")
    return names
