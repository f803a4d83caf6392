"""A process group of torch on a communicator of MPI."""

# torch's own types for these methods are of its overloads, and not how it calls them.
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from mpi4py import MPI

from commlang.execute.mpi.actions import Actions
from commlang.execute.mpi.calls import MpiCalls
from commlang.execute.mpi.library import progress, world, world_of
from commlang.execute.mpi.work import Finished
from commlang.execute.settings import MPI as NAME

if TYPE_CHECKING:
    from datetime import timedelta

    from commlang.execute.mpi.action import Action

_c10d: Any = torch._C._distributed_c10d  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]

Tensor = torch.Tensor
Tensors = list[torch.Tensor]
Lists = list[list[torch.Tensor]]

_LARGEST_TAG = 2**15 - 1
"""Of those that every MPI has."""

_DONE = Finished()


def create(options: Any) -> MpiProcessGroup:
    """The group that torch asks for; only its members call this.

    Raises UsageError if the default group is not all of the ranks that mpirun started.
    """
    progress()
    members = list(options.global_ranks_in_group)
    if members:
        everyone = world()
    else:
        everyone = world_of(options.group_rank, options.group_size)
        members = list(range(everyone.size))
    # Groups that share ranks may be made at once; a tag from the name tells them apart.
    tag = zlib.crc32(options.group_id.encode()) % _LARGEST_TAG
    comm = everyone.Create_group(everyone.group.Incl(members), tag)
    return MpiProcessGroup(comm, options.group_id, options.timeout)


class MpiProcessGroup(dist.ProcessGroup):
    """All that `torch.distributed` asks of a group; its public functions end here.

    What is not asynchronous waits inside of MPI, for as long as it takes; `timeout` is there for
    groups that are made after this one.
    """

    def __init__(self, comm: MPI.Intracomm, name: str, timeout: timedelta) -> None:
        super().__init__(comm.rank, comm.size)  # pyright: ignore[reportCallIssue] - needs no store
        self._comm, self._name = comm, name
        self._actions = Actions(comm)
        self.options: Any = _c10d.Backend.Options(NAME, timeout)

    def bound_calls(self, *, all_wait: bool) -> MpiCalls:
        """Operations whose buffers are prepared once, for an executor; see `calls_on`."""
        return MpiCalls(self, self._actions, all_wait=all_wait)

    def allreduce(self, tensors: Tensors, opts: Any = None) -> dist.Work:
        opts = opts or _c10d.AllreduceOptions()
        return _done(self._actions.all_reduce(tensors[0], opts.reduceOp), opts)

    def reduce(self, tensors: Tensors, opts: Any) -> dist.Work:
        return _done(self._actions.reduce(tensors[0], opts.reduceOp, opts.rootRank), opts)

    def broadcast(self, tensors: Tensors, opts: Any) -> dist.Work:
        return _done(self._actions.broadcast(tensors[0], opts.rootRank), opts)

    def allgather(self, outputs: Lists, inputs: Tensors, opts: Any = None) -> dist.Work:
        return _done(self._actions.all_gather(outputs[0], inputs[0]), opts)

    def all_gather_single(self, output: Tensor, tensor: Tensor, opts: Any = None) -> dist.Work:
        return _done(self._actions.all_gather_single(output, tensor), opts)

    def gather(self, outputs: Lists, inputs: Tensors, opts: Any) -> dist.Work:
        made = outputs[0] if outputs else []
        return _done(self._actions.gather(inputs[0], made, opts.rootRank), opts)

    def scatter(self, outputs: Tensors, inputs: Lists, opts: Any) -> dist.Work:
        given = inputs[0] if inputs else []
        return _done(self._actions.scatter(outputs[0], given, opts.rootRank), opts)

    def reduce_scatter(self, outputs: Tensors, inputs: Lists, opts: Any = None) -> dist.Work:
        opts = opts or _c10d.ReduceScatterOptions()
        return _done(self._actions.reduce_scatter(outputs[0], inputs[0], opts.reduceOp), opts)

    def reduce_scatter_single(self, output: Tensor, tensor: Tensor, opts: Any = None) -> dist.Work:
        opts = opts or _c10d.ReduceScatterOptions()
        return _done(self._actions.reduce_scatter_single(output, tensor, opts.reduceOp), opts)

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> dist.Work:
        return _done(self._actions.all_to_all(outputs, inputs), opts)

    def all_to_all_single(
        self,
        output: Tensor,
        tensor: Tensor,
        output_splits: list[int] | None = None,
        input_splits: list[int] | None = None,
        opts: Any = None,
    ) -> dist.Work:
        splits = output_splits or [], input_splits or []
        return _done(self._actions.all_to_all_single(output, tensor, *splits), opts)

    def barrier(self, opts: Any = None) -> dist.Work:
        return _done(self._actions.barrier(), opts)

    def send(self, tensors: Tensors, peer: int, tag: int) -> dist.Work:
        return self._actions.send(tensors[0], peer, tag).start()

    def recv(self, tensors: Tensors, peer: int, tag: int) -> dist.Work:
        return self._actions.recv(tensors[0], peer, tag).start()

    def recv_anysource(self, tensors: Tensors, tag: int) -> dist.Work:
        return self._actions.recv(tensors[0], None, tag).start()

    def shutdown(self) -> None:
        """Give the communicator back, as all of its ranks do."""
        if not MPI.Is_finalized() and self._comm != MPI.COMM_NULL:
            self._comm.Free()

    def abort(self) -> None:
        """Leave it as it is: to end what other ranks wait for, MPI would have to end the job."""

    def getBackendName(self) -> str:  # noqa: N802 - torch's name
        return NAME

    def name(self) -> str:
        return NAME

    def _get_backend(self, device: torch.device) -> Any:
        if device.type != "cpu":
            raise RuntimeError(f"{NAME} moves tensors of the cpu, not of {device.type}")
        return self

    @property
    def supports_coalescing(self) -> bool:
        return False

    @property
    def group_name(self) -> str:
        return self._name


def _done(action: Action, opts: Any) -> dist.Work:
    """Start an operation, or do it if torch would only wait for it."""
    if opts is None or opts.asyncOp:
        return action.start()
    action.run()
    return _DONE
