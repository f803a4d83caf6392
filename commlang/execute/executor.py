"""The executor: a plan bound once to a process group and to tensors, then run at will."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from operator import length_hint
from typing import TYPE_CHECKING, Any, Self

import torch
import torch.distributed as dist
from torch.autograd import profiler

from commlang.diagnostics import did_you_mean
from commlang.errors import CommlangError, UsageError
from commlang.execute.agreement import Agreement
from commlang.execute.buckets import bind_bucket
from commlang.execute.collectives import bind_communication
from commlang.execute.communicators import Communicators, backend_of, device_of, timeout_of
from commlang.execute.in_use import give_up, given_up, locks_of, refuse_busy, refuse_failed
from commlang.execute.local_work import bind_local
from commlang.execute.memory import Memory
from commlang.execute.meshes import (
    Axes,
    DeviceMesh,
    axes_of,
    checked_group,
    device_of_mesh,
    is_alive,
)
from commlang.execute.report import first_line
from commlang.execute.shortage import lacks_memory, shortage
from commlang.execute.surroundings import as_here, below_autograd, ranged
from commlang.execute.worker import Run, Worker
from commlang.operations import Kind
from commlang.schedule import Act
from commlang.syntax import ast
from commlang.transports import Backend, NcclInit, Target
from commlang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta
    from threading import Lock
    from types import TracebackType

    from commlang.execute.calls import Call
    from commlang.plan import Plan
    from commlang.schedule import Action

Step = Callable[[], Any]


class Executor:
    """Runs a plan on a process group; a context manager, for one thread.

    It never initialises or destroys a process group that it did not make. On entry the ranks of
    `group` (the world by default) compare their plans once, so that a rank that is missing or
    runs another plan is named, and make the plan's subgroups, all in one order. On exit they wait
    for one another and destroy those. `timeout` is how long operations on subgroups, entry and
    exit may wait; the group's own by default.

    `group` may be a DeviceMesh, or a part of one: its ranks in row-major order are the plan's, and
    its own groups serve the axes that the pattern's `mesh` gives the same names.

    `externs` binds the pattern's externs to Python callables that take the extern's parameters in
    order: tensors of the declared shape, to be written in place, and numbers. Every extern that
    this rank calls needs one, unless `stand_in` has them take the time that their `cost` says.
    `device` is where the tensors are; by default CUDA for a group with NCCL, else the CPU.

    On NCCL, a plan that was not made for it is checked for it, and PatternError is raised for what
    hangs there, or may hang unless `allow_hazards` is given.

    Raises UsageError if torch.distributed is not initialised, this rank is not in the group, the
    group has another size than the plan's world, a DeviceMesh another shape than the pattern's
    mesh, or an extern is missing or unknown.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        group: dist.ProcessGroup | DeviceMesh | int | None = None,
        device: torch.device | str | None = None,
        externs: Mapping[str, Callable[..., Any]] | None = None,
        stand_in: bool = False,
        timeout: timedelta | None = None,
        allow_hazards: bool = False,
    ) -> None:
        self.plan = plan
        # Weak, since a gloo group that outlives destroy_process_group aborts Python's exit.
        self._group = weakref.ref(checked_group(plan, group))
        mesh = group if isinstance(group, DeviceMesh) else None
        self.rank = dist.get_rank(self.group)
        if device is None:
            device = device_of(self.group) if mesh is None else device_of_mesh(mesh)
        self.device = torch.device(device)
        self.backend = backend_of(self.group, self.device)
        if "nccl" in self.backend:
            eager = getattr(self.group, "bound_device_id", None) is not None
            init = NcclInit.EAGER if eager else NcclInit.LAZY
            plan.check_for(Target(Backend.NCCL, init), allow_hazards=allow_hazards)
        self.timeout = timeout if timeout is not None else timeout_of(self.group, self.device)
        self._axes = Axes({}) if mesh is None else axes_of(plan, mesh, self.group, self.device)
        self.externs = dict(externs or {})
        self.position: memoryview | None = None
        """A watchdog's own: `position[0]` is then the number of the action that runs."""
        self.program = plan.program(self.rank)
        self._check_externs(stand_in)
        self.mode = nullcontext() if self.externs else below_autograd()
        """The context of the steps: beneath autograd, unless Python callables are among them."""
        self.actions: list[Action] = plan.actions(self.rank, self.program)
        self._memory = Memory(self.program, self.device)
        self._agreement: Agreement | None = None
        self._communicators: Communicators | None = None
        self._bound = False
        self._steps: list[Step] = []
        self._locks: list[Lock] = []
        self._all_wait = False
        self._works: dict[int, Any] = {}
        self._failed_row: int | None = None
        self._failure: str | None = None
        self._worker: Worker | None = None

    def _check_externs(self, stand_in: bool) -> None:
        called = {s.name for s in self.program.sites if s.kind is Kind.EXTERN}
        modules = self.plan.definition.module.reachable()
        known = called | {
            name
            for module in modules
            for name, found in module.symbols.items()
            if isinstance(found.node, ast.Extern)
        }
        unknown = [name for name in self.externs if name not in known]
        if unknown:
            hint = did_you_mean(unknown[0], known) or f"it has {', '.join(sorted(known)) or 'none'}"
            raise UsageError(f"`{self.plan.pattern}` has no extern `{unknown[0]}`; {hint}")
        missing = sorted(called - set(self.externs))
        if missing and not stand_in:
            name = missing[0]
            raise UsageError(
                f"extern `{name}` of `{self.plan.pattern}` has no Python callable; "
                f"give externs={{{name!r}: …}}, or stand_in=True to only take its time"
            )

    @property
    def group(self) -> dist.ProcessGroup:
        """The process group; raises UsageError once it was destroyed."""
        group = self._group()
        if group is None or not is_alive(group):
            raise UsageError("the process group of this Executor was destroyed; make another one")
        return group

    # -------------------------------------------------------------- lifetime

    def __enter__(self) -> Self:
        if self._communicators is not None:
            raise UsageError("this Executor is open already; make another one")
        self._refuse_failed()
        group, lent = self.group, self._axes.groups()
        agreement = Agreement(group, self.timeout)
        self._all_wait = agreement.meet(_card(self.plan, self.device), waits=self._waits())
        self._communicators = Communicators(self.plan, group, self.timeout, agreement.turn, lent)
        self._agreement = agreement
        self._locks = locks_of(self._communicators.lent)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._communicators is None or self._agreement is None:
            return
        if self._worker is not None:
            self._worker.close()
            self._worker = None
        communicators, agreement = self._communicators, self._agreement
        self._communicators = self._agreement = None
        self._steps, self._bound, self._locks = [], False, []
        well = error is None and self._failure is None
        if error is not None and self._failure is None:
            said = f"rank {self.rank} left the Executor between two runs: {_said(error)}"
            agreement.failures.tell(said, cause=True)
        # Whoever closes connections while another rank still makes or uses them breaks that rank.
        if communicators.own:
            agreement.part(wait=well)
        if well:
            communicators.close()
        else:
            pending = (self.program.site_of(row).kind.is_collective for row in self._works)
            communicators.abandon(pending=any(pending))
        self._works.clear()

    # --------------------------------------------------------------- running

    def start(self, /, **tensors: torch.Tensor) -> Run[dict[str, torch.Tensor]]:
        """`run` in the background, as with torch's `async_op=True`; the handle's `wait` ends it.

        Runs that were started go on in one thread, one after the other. Until they are waited for,
        nobody may use their tensors, or run something else on the group. What `run` would raise,
        `wait` does.
        """
        self._worker = self._worker or Worker(self.device)
        mode = as_here()

        def run() -> dict[str, torch.Tensor]:
            with mode:
                return self.run(**tensors)

        return self._worker.submit(run)

    def run(self, /, **tensors: torch.Tensor) -> dict[str, torch.Tensor]:
        """Run the plan once on these tensors, in place; returns all tensor parameters by name.

        Tensors that are not given are those of the run before, or are made and filled with zeros.
        Gradients are not recorded, also where a tensor requires them. Raises UsageError for
        tensors that the plan does not fit; nothing has run then. Raises CommlangError, which
        names the rank and the statement, if an operation or an extern fails: the ranks are then
        at different places, so this Executor runs no more.
        """
        if self._worker is not None and self._worker.is_busy_for_others:
            raise UsageError("a run that was started is under way; wait for it first")
        locks = self._locks
        for lock in locks:
            if not lock.acquire(False):
                refuse_busy(locks, lock)
        try:
            if self._failure is not None or given_up or self._group() is None:
                self._refuse_failed()
            if not (self._bound and self._memory.holds(tensors)):
                self.bind(**tensors)
            self._run()
        finally:
            for lock in locks:
                lock.release()
        return self._memory.tensors.copy()

    def _run(self) -> None:
        position = self.position
        steps = self._traced() if getattr(profiler, "_is_profiler_enabled", False) else self._steps
        coming = iter(steps)
        try:
            with self.mode:
                if position is None:
                    for step in coming:
                        step()
                else:
                    for number, step in enumerate(coming):
                        position[0] = number
                        step()
        except BaseException as error:
            number = len(steps) - length_hint(coming) - 1  # counting would cost each step time
            self._failure = self._account(number, error)
            if not isinstance(error, Exception):
                raise
            raise CommlangError(self._failure) from error

    def _account(self, number: int, error: BaseException) -> str:
        """Tell the other ranks of the failure of an action; all that is known of it."""
        failure = f"rank {self.rank} at {self.describe(number)}: {_said(error)}"
        if number < 0:  # interrupted before the first
            return failure
        row = self._row_at(number)
        own = self.program.site_of(row).kind.is_local or not isinstance(error, Exception)
        assert self._agreement is not None
        self._agreement.failures.tell(failure, cause=own)
        if not own:
            failure += self._agreement.failures.hear()
            group = self._group()
            if group is not None and int(self.program.group[row]) == 0:
                give_up(group, failure)
        return failure

    def _traced(self) -> list[Step]:
        """The steps, each a range that a profiler shows under its statement's text and place."""
        actions = zip(self.actions, self._steps, strict=True)
        return [ranged(self._title(action), step) for action, step in actions]

    def _title(self, action: Action) -> str:
        text = f"{self.program.text(action.row)} ({self.program.where(action.row)})"
        ends = action.act is Act.JOIN and not text.startswith("wait")
        return f"end of {text}" if ends else text

    def _refuse_failed(self) -> None:
        if self._failure is not None:
            raise CommlangError(
                f"this Executor stopped in the middle of a run ({self._failure}), so its ranks are "
                "at different places; make another one, on a new process group if it was an "
                "operation on the group itself that failed"
            )
        refuse_failed(self.group)

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensor parameters that are bound now."""
        return dict(self._memory.tensors)

    @property
    def steps(self) -> list[Step]:
        """One callable per action, in order."""
        return self._steps

    def bind(self, /, **tensors: torch.Tensor) -> None:
        """Cut all views and resolve all calls for these tensors, unless that was done before."""
        if self._communicators is None:
            raise UsageError("use the Executor in a `with` statement")
        if self._bound and self._memory.holds(tensors):
            return
        self._bound = False
        self._memory.adopt(tensors)
        self._steps = [self._step(action) for action in self.actions]
        self._bound = True

    def release(self) -> None:
        """Hold on to no tensors; the next run or bind needs all that the pattern reads."""
        self._bound, self._steps = False, []
        self._memory.release()

    def _step(self, action: Action) -> Step:
        works, row = self._works, action.row
        if action.act is Act.JOIN:
            return self._join(action.rows)
        if action.act is Act.BATCH:
            return self._batch(action.rows)
        if self.program.site_of(row).kind.is_local:
            return bind_local(self.program, row, self._memory, self.externs)
        if len(action.rows) > 1:
            together = self.program.is_message[row]
            return self._launch(action.rows) if together else self._bucket(action.rows)
        call = self._call(row)
        if action.act is Act.RUN:
            return call.run
        start = call.start

        def issue() -> None:
            works[row] = start()

        return issue

    def _call(self, row: int) -> Call:
        assert self._communicators is not None
        group = self._communicators[int(self.program.group[row])]
        return bind_communication(
            self.program, row, self._memory, group, self.backend, all_wait=self._all_wait
        )

    def _waits(self) -> bool:
        """Whether this rank waits in every collective that it calls."""
        collective = self.program.is_collective
        apart = [a for a in self.actions if a.act is not Act.JOIN and len(a.rows) > 1]
        started = [a for a in self.actions if a.act is Act.START]
        return not any(collective[row] for action in (*apart, *started) for row in action.rows)

    def _bucket(self, rows: tuple[int, ...]) -> Step:
        """Start collectives as one, which ends for all of them when it is first waited for."""
        assert self._communicators is not None
        group = self._communicators[int(self.program.group[rows[0]])]
        start = bind_bucket(self.program, rows, self._memory, group, self.backend)
        works = self._works

        def issue() -> None:
            work = start()
            works.update(dict.fromkeys(rows, work))

        return issue

    def _launch(self, rows: tuple[int, ...]) -> Step:
        """Start messages of one group as a batch, which ends for all of them at once."""
        calls = [(row, self._call(row)) for row in rows]
        ((_, start),) = self._launches(calls)
        works = self._works

        def issue() -> None:
            batch = start()
            works.update(dict.fromkeys(rows, batch))

        return issue

    def _batch(self, rows: tuple[int, ...]) -> Step:
        """Start all messages and collectives, do the local work, then join."""
        local: list[tuple[int, Step]] = []
        calls: list[tuple[int, Call]] = []
        for row in rows:
            if self.program.site_of(row).kind.is_local:
                step = bind_local(self.program, row, self._memory, self.externs)
                local.append((row, step))
            else:
                calls.append((row, self._call(row)))
        starts = [(row, call.start) for row, call in calls]
        if "nccl" in self.backend:
            alone = [(row, call.start) for row, call in calls if call.message is None]
            starts = [*self._launches(calls), *alone]
        return self._batch_step(starts, local)

    def _launches(self, calls: list[tuple[int, Call]]) -> Iterator[tuple[int, Callable[[], Any]]]:
        """One launch per group for its messages, as NCCL needs for those that cross.

        `batch_isend_irecv` makes one of those on its first message's group only. All ranks take
        their groups in the order of the groups' numbers, so that no two wait for each other.
        """
        messages: dict[int, list[tuple[int, dist.P2POp]]] = {}
        for row, call in calls:
            if call.message is not None:
                number = int(self.program.group[row])
                messages.setdefault(number, []).append((row, call.message))
        for _, batch in sorted(messages.items()):
            yield batch[0][0], partial(_Batch, [message for _, message in batch])

    def _batch_step(
        self, starts: list[tuple[int, Callable[[], Any]]], local: list[tuple[int, Step]]
    ) -> Step:
        rows = [row for row, _ in (*starts, *local, *starts)]  # in the order in which they may fail
        issue, steps = [start for _, start in starts], [step for _, step in local]

        def run() -> None:
            works = list[Any]()
            done = 0
            try:
                for start in issue:
                    works.append(start())
                done = len(works)
                for step in steps:
                    step()
                    done += 1
                for work in works:
                    work.wait()
                    done += 1
            except BaseException:
                self._failed_row = rows[max(done, len(works))]
                self._works.update(zip(rows, works, strict=False))
                raise

        return run

    def _join(self, rows: tuple[int, ...]) -> Step:
        pop = self._works.pop
        if len(rows) == 1:
            return self._join_one(rows[0])

        def join() -> None:
            row = -1
            try:
                for row in rows:
                    pop(row).wait()
            except BaseException:
                self._failed_row = row
                raise

        return join

    def _join_one(self, row: int) -> Step:
        pop = self._works.pop

        def join() -> None:
            try:
                pop(row).wait()
            except BaseException:
                self._failed_row = row
                raise

        return join

    def describe(self, number: int) -> str:
        """The statement of an action, with its place: for diagnoses."""
        if not 0 <= number < len(self.actions):
            return "no statement"
        row = self._row_at(number)
        return f"`{self.program.text(row)}` ({self.program.where(row)}){self._partner(row)}"

    def _row_at(self, number: int) -> int:
        """The row of an action, or that of its rows which has failed."""
        return self.actions[number].row if self._failed_row is None else self._failed_row

    def _partner(self, row: int) -> str:
        """The rank at the other end of a message, which its text gives as an expression."""
        if not self.program.site_of(row).kind.is_message:
            return ""
        return f", with rank {int(self.program.peer[row])} at the other end"


class _Batch:
    """The works of one batch_isend_irecv, waited for as one."""

    def __init__(self, messages: list[dist.P2POp]) -> None:
        self.works = dist.batch_isend_irecv(messages)

    def wait(self) -> None:
        """Wait for all of them; once, since a work of gloo waits for another message then."""
        works, self.works = self.works, []
        for work in works:
            work.wait()


def _card(plan: Plan, device: torch.device) -> dict[str, str]:
    """All that ranks which run together must agree on."""
    return {**plan.summary(), "commlang": __version__, "device": device.type}


def _said(error: BaseException) -> str:
    """What failed, in a line; torch says all it has to say in RuntimeErrors."""
    if lacks_memory(error):
        return shortage(error)
    name = type(error).__name__
    if not str(error):
        return name
    return first_line(error) if name == "RuntimeError" else f"{name}: {first_line(error)}"
