"""Reading a trace back: when the rows of a program ran."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from commlang.errors import UsageError
from commlang.program.timing import Timing
from commlang.records import record
from commlang.schedule import Act, Action, apply
from commlang.trace.events import ACTION
from commlang.trace.format import Header, Slice, parameters_of, rows_of
from commlang.trace.spans import rows_begun, rows_ended
from commlang.trace.written import as_written

if TYPE_CHECKING:
    from commlang.program import Program
    from commlang.program.columns import Array

MAX_BYTES = 512 << 20
"""Largest file that is read; those that `commlang run --trace` writes are smaller."""


class _File(BaseModel):
    """What a trace of ours has, in whatever order; other events are left alone."""

    model_config = ConfigDict(extra="ignore")

    otherData: Header  # noqa: N815 - the format's name
    traceEvents: list[Any]  # noqa: N815


@record
class Runs:
    """The slices of a trace as columns: run, rank, begin and end in ns; and their actions."""

    run: Array
    rank: Array
    start: Array
    end: Array
    actions: list[Action]


class Trace:
    """A trace of `commlang run --trace`: what it is of, and the times of a program's rows."""

    def __init__(self, path: str, header: Header, slices: list[Slice]) -> None:
        self.path = path
        self.header = header
        """What ran: the pattern, its parameters, the world, the passes, clocks and versions."""
        self._slices = slices

    @cached_property
    def _runs(self) -> Runs:
        found = self._slices
        actions = [Action(Act(s.args.act), s.args.row, tuple(s.args.rows)) for s in found]
        # In whole nanoseconds an end is equal to the beginning that follows it.
        start = np.rint(np.array([s.ts for s in found]) * 1e3)
        return Runs(
            np.array([s.args.iteration for s in found], dtype=np.int64),
            np.array([s.pid for s in found], dtype=np.int64),
            start,
            start + np.rint(np.array([s.dur for s in found]) * 1e3),
            actions,
        )

    @property
    def totals(self) -> list[float]:
        """Seconds of each run that is kept: from when the first rank began to the last one's end.

        NaN for a run without a slice.
        """
        runs = self._runs
        masks = [runs.run == run for run in range(self.header.kept)]
        spans = [(runs.start[m], runs.end[m]) for m in masks]
        return [float(e.max() - s.min()) / 1e9 if len(s) else float("nan") for s, e in spans]

    @property
    def middle(self) -> int:
        """The run of median duration (of two in the middle, the shorter), of those with a slice."""
        totals = np.array(self.totals)
        order = np.argsort(totals, kind="stable")
        return int(order[(np.count_nonzero(~np.isnan(totals)) - 1) // 2])

    def program(self, program: Program) -> Program:
        """The program in the order in which it ran: with the passes of the run applied.

        `program` is the pattern as written, or that order already. Raises UsageError if the trace
        is of something else.
        """
        self._refuse_other(program)
        if rows_of(program) == self.header.rows:
            return program
        ran = apply(program, self.header.passes, self.header.chunks)
        if rows_of(ran) != self.header.rows:
            raise UsageError(
                f"{self.path} does not fit `{program.name}`: its {len(ran):,} events come in "
                "another order than those of the run; run it with --trace again"
            )
        return ran

    def timing(self, program: Program, run: int | None = None) -> Timing:
        """When each row of a program began and ended in a run, by default that of median duration.

        `program` is the pattern as written or in the order that ran. Of an asynchronous row the end
        is that of its join; of one that was split, that of its last piece. Rows that are not in the
        trace, such as waits of the text that a pass has placed anew, have NaN. Raises UsageError
        for a run that was not kept, or if the trace is of another pattern, file, world or
        parameters.
        """
        ran = self.program(program)
        number = self._chosen(run)
        start, end = self._times(ran, number)
        if ran is not program:
            start, end = as_written(program, ran, self.header.chunks, start, end)
        return Timing(start, end, "measured")

    def _chosen(self, run: int | None) -> int:
        kept = self.header.kept
        if not kept or not self._slices:
            raise UsageError(f"{self.path} holds no timed run")
        if run is not None and not 0 <= run < kept:
            raise UsageError(f"{self.path} holds runs 0 to {kept - 1}, not {run}")
        return self.middle if run is None else run

    def _times(self, program: Program, number: int) -> tuple[Array, Array]:
        start, end = (np.full(len(program), np.nan) for _ in range(2))
        runs = self._runs
        mine = np.flatnonzero(runs.run == number)
        zero = runs.start[mine].min(initial=np.inf)
        for at in mine.tolist():
            action = runs.actions[at]
            self._refuse_foreign(program, action, int(runs.rank[at]))
            start[list(rows_begun(program, action))] = (runs.start[at] - zero) / 1e9
            end[list(rows_ended(program, action))] = (runs.end[at] - zero) / 1e9
        return start, end

    def _refuse_foreign(self, program: Program, action: Action, rank: int) -> None:
        for row in (action.row, *action.rows):
            if row >= len(program) or program.rank[row] != rank:
                raise UsageError(f"{self.path} is damaged: rank {rank} has no event {row}")

    def _refuse_other(self, program: Program) -> None:
        header = self.header
        found = {
            "another pattern": (header.pattern, program.name),
            "another world": (header.world, program.world),
            "other parameters": (_listed(header.parameters), _listed(parameters_of(program))),
        }
        for what, (theirs, ours) in found.items():
            if theirs != ours:
                raise UsageError(
                    f"{self.path} is of {what}: {theirs}, not {ours}; draw it with that, "
                    "or run with --trace again"
                )
        if header.digest != program.definition.module.digest():
            raise UsageError(
                f"{self.path} was written of another text of {header.path} (or of a file that it "
                "imports); run it with --trace again"
            )


def _listed(values: dict[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items()) or "none"


def read_trace(path: str | Path) -> Trace:
    """Read a trace that `commlang run --trace` wrote; raises UsageError for anything else."""
    name = str(path)
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {name}: {getattr(error, 'strerror', error)}") from None
    if len(data) > MAX_BYTES:
        raise UsageError(f"{name} is larger than {MAX_BYTES >> 20} MiB; no trace of commlang's")
    try:
        file = _File.model_validate_json(data)
        slices = TypeAdapter(list[Slice]).validate_python(
            [e for e in file.traceEvents if _is_slice(e)]
        )
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise UsageError(
            f"{name} is not a trace of `commlang run --trace`: {where}: {first['msg']}"
        ) from None
    kept = file.otherData.kept
    if kept > len(slices) > 0:
        raise UsageError(f"{name} is damaged: {kept:,} runs, and {len(slices)} slices of them")
    return Trace(name, file.otherData, slices)


def _is_slice(event: Any) -> bool:
    return isinstance(event, dict) and event.get("cat") == ACTION and event.get("ph") == "X"  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
