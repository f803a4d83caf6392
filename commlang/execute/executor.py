"""The executor: a plan bound once to a process group and to tensors, then run at will."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, Self

import torch
import torch.distributed as dist

from commlang.errors import CommlangError, UsageError
from commlang.execute.collectives import Call, bind_communication
from commlang.execute.communicators import Communicators, compare_fingerprints
from commlang.execute.local_work import bind_local
from commlang.execute.memory import Memory
from commlang.schedule import Act, linearise

if TYPE_CHECKING:
    from types import TracebackType

    from commlang.plan import Plan
    from commlang.schedule import Action

Step = Callable[[], Any]

_turns = count()


class Executor:
    """Runs a plan on a process group; a context manager.

    It never initialises or destroys a process group that it did not make. Subgroups are created
    on entry, on all ranks in the plan's order and with `timeout`, and destroyed on exit; on entry
    the ranks also compare their plans once, so that a rank that is missing or runs another plan
    is named. `externs` binds the pattern's externs to Python callables that take the extern's
    parameters in order (tensors are written in place). One Executor is for one thread.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        group: dist.ProcessGroup | None = None,
        device: torch.device | str | None = None,
        externs: Mapping[str, Callable[..., Any]] | None = None,
        timeout: timedelta = timedelta(minutes=1),
    ) -> None:
        if not dist.is_initialized():
            raise UsageError("torch.distributed is not initialised; call init_process_group first")
        self.plan = plan
        self.group = group or dist.group.WORLD
        if self.group is None or dist.get_rank(self.group) < 0:
            raise UsageError("this rank is not a member of the group")
        self.rank = dist.get_rank(self.group)
        self.device = torch.device(device) if device is not None else _device_of(self.group)
        self.externs = dict(externs or {})
        self.timeout = timeout
        self.position = memoryview(bytearray(8)).cast("q")
        """`position[0]` is the number of the action that runs; a watchdog may put its own here."""
        self.backend = dist.get_backend(self.group)
        self._communicators: Communicators | None = None
        self._memory: Memory | None = None
        self._bound_to: tuple[tuple[str, int], ...] | None = None
        self._works: dict[int, Any] = {}
        self.program = plan.program(self.rank)
        self.actions: list[Action] = linearise(self.program, self.rank, plan.program)
        self._steps: list[Step] = []

    # -------------------------------------------------------------- lifetime

    def __enter__(self) -> Self:
        seconds = self.timeout.total_seconds()
        compare_fingerprints(self.plan, self.group, seconds, next(_turns))
        self._communicators = Communicators(self.plan, self.group, self.timeout)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._communicators is not None and error is None:
            self._communicators.close()
        self._communicators = None
        self._steps.clear()

    # --------------------------------------------------------------- running

    def run(self, **tensors: torch.Tensor) -> dict[str, torch.Tensor]:
        """Run the plan once on these tensors; returns all tensor parameters by name.

        Tensors that are not given are made, filled with zeros, and kept from run to run. Raises
        UsageError for tensors that the plan does not fit and CommlangError, naming the statement,
        if an operation fails.
        """
        self.bind(**tensors)
        position = self.position
        number = -1
        try:
            for number, step in enumerate(self._steps):  # noqa: B007 (named in the error)
                position[0] = number
                step()
        except (RuntimeError, ValueError, TypeError) as error:
            raise self._failure(number, error) from error
        return self.tensors

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensor parameters that are bound now."""
        return {} if self._memory is None else dict(self._memory.tensors)

    @property
    def steps(self) -> list[Step]:
        """One callable per action, in order."""
        return self._steps

    def bind(self, **tensors: torch.Tensor) -> None:
        """Cut all views and resolve all calls for these tensors, unless that was done before."""
        if self._communicators is None:
            raise UsageError("use the Executor in a `with` statement")
        asked = tuple(sorted((n, id(t)) for n, t in tensors.items()))
        if self._memory is not None and asked == self._bound_to:
            return
        kept = {} if self._memory is None else self._memory.tensors
        self._memory = Memory(self.program, {**kept, **tensors}, self.device)
        self._steps = [self._step(action, self._memory) for action in self.actions]
        self._bound_to = asked
        self._alive = tensors  # an id is only good while its tensor lives

    def _step(self, action: Action, memory: Memory) -> Step:
        works = self._works
        if action.act is Act.JOIN:
            rows = action.rows
            return lambda: _join(works, rows)
        if action.act is Act.BATCH:
            return self._batch(action.rows, memory)
        row = action.row
        if self.program.site_of(row).kind.is_local:
            return bind_local(self.program, row, memory, self.externs)
        start = self._call(row, memory).start
        if action.act is Act.START:
            return lambda: works.__setitem__(row, start())
        return lambda: _finish(start())

    def _call(self, row: int, memory: Memory) -> Call:
        assert self._communicators is not None
        group = self._communicators[int(self.program.group[row])]
        return bind_communication(self.program, row, memory, group, self.backend)

    def _batch(self, rows: tuple[int, ...], memory: Memory) -> Step:
        """Start all messages and collectives, do the local work, then join."""
        local: list[Step] = []
        calls: list[Call] = []
        for row in rows:
            if self.program.site_of(row).kind.is_local:
                local.append(bind_local(self.program, row, memory, self.externs))
            else:
                calls.append(self._call(row, memory))
        messages = [call.message for call in calls if call.message is not None]
        if messages and "nccl" in self.backend:  # one launch, as NCCL needs for crossing messages
            others = [call.start for call in calls if call.message is None]
            return lambda: _run_batch([lambda: _Batch(messages), *others], local)
        starts = [call.start for call in calls]
        return lambda: _run_batch(starts, local)

    def _failure(self, number: int, error: Exception) -> CommlangError:
        said = str(error).split("\n", 1)[0]
        return CommlangError(f"rank {self.rank} at {self.describe(number)}: {said}")

    def describe(self, number: int) -> str:
        """The statement of an action, with its place: for diagnoses."""
        if not 0 <= number < len(self.actions):
            return "no statement"
        row = self.actions[number].row
        site = self.program.site_of(row)
        line, column = site.source.position(site.span.start)
        return f"`{self.program.text(row)}` ({site.source.path}:{line}:{column})"


class _Batch:
    """The works of one batch_isend_irecv, waited for as one."""

    def __init__(self, messages: list[dist.P2POp]) -> None:
        self.works = dist.batch_isend_irecv(messages)

    def wait(self) -> None:
        for work in self.works:
            work.wait()


def _finish(work: Any) -> None:
    if work is not None:
        work.wait()


def _join(works: dict[int, Any], rows: tuple[int, ...]) -> None:
    for row in rows:
        _finish(works.pop(row))


def _run_batch(starts: list[Callable[[], Any]], local: list[Step]) -> None:
    works = [start() for start in starts]
    for work in local:
        work()
    for work in works:
        _finish(work)


def _device_of(group: dist.ProcessGroup) -> torch.device:
    """The device whose tensors the group's backend moves."""
    if "nccl" in dist.get_backend(group):
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")
