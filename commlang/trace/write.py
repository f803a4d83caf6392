"""Writing a trace: whole or not at all, and no larger than a viewer can hold."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commlang.errors import UsageError
from commlang.trace.events import events
from commlang.trace.format import ClockFact, Header, parameters_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commlang.plan import Plan
    from commlang.trace.clocks import RankTrace

MOST_ROWS = 50_000
"""Rows of all ranks and kept runs together; each takes up to five events of some 250 bytes."""


def runs_to_keep(events_per_run: int, runs: int) -> int:
    """How many timed runs a trace holds, the first ones: at least one, of which it may be cut."""
    return min(runs, max(1, MOST_ROWS // max(events_per_run, 1)))


def check_path(path: str) -> None:
    """Raise UsageError if a trace cannot be written there, before there is one."""
    target = Path(path)
    folder = target.parent
    why = None
    try:
        if target.is_dir():
            why = "it is a folder"
        elif not folder.is_dir():
            why = f"there is no folder {folder}"
        elif not os.access(target if target.exists() else folder, os.W_OK):
            why = "permission denied"
        elif not target.exists() or target.is_file():
            _beside(target).touch(exist_ok=False)
            _beside(target).unlink()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
    if why:
        raise UsageError(f"cannot write {path}: {why}; name a file in a folder that you may write")


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}")


def write_trace(
    path: str, plan: Plan, ranks: Sequence[RankTrace], facts: dict[str, Any], runs: int
) -> None:
    """Write the trace of a plan's timed runs, of which there were `runs`.

    `facts` are further fields of the header: `torch`, `backend`, `device`, `clock_method`. Raises
    OSError; the file is then as it was.
    """
    per_rank = max(1, MOST_ROWS // plan.world)
    header = _header(plan, ranks, facts, runs, per_rank)
    write_whole(path, _lines(header, events(plan, ranks, per_rank)))


def write_whole(path: str, lines: Iterable[str]) -> None:
    """Write a file that others see whole or not at all; raises OSError."""
    target = Path(path)
    if target.exists() and not target.is_file():  # a pipe or a terminal
        with target.open("w", encoding="utf-8") as stream:
            stream.writelines(lines)
        return
    whole = _beside(target)
    try:
        with whole.open("w", encoding="utf-8") as stream:
            stream.writelines(lines)
        whole.replace(target)
    except BaseException:
        with suppress(OSError):
            whole.unlink()
        raise


def _header(
    plan: Plan, ranks: Sequence[RankTrace], facts: dict[str, Any], runs: int, per_rank: int
) -> Header:
    program = plan.program()
    longest = max(rank.marks.shape[1] - 1 for rank in ranks)
    cut = f"only the first {per_rank:,} actions of each rank" if longest > per_rank else None
    clocks: dict[tuple[float, float], list[int]] = {}
    for rank in ranks:
        clocks.setdefault((rank.clock.offset[0], rank.clock.bound), []).append(rank.rank)
    return Header(
        pattern=plan.pattern,
        path=plan.path,
        digest=plan.digest,
        world=plan.world,
        parameters=parameters_of(program),
        fingerprint=plan.fingerprint,
        rows=rows_of(program),
        passes=plan.passes,
        chunks=plan.chunks,
        buckets=plan.buckets,
        hosts=[rank.host for rank in ranks],
        runs=runs,
        kept=ranks[0].marks.shape[0],
        cut=cut,
        clocks=[ClockFact(ranks=r, offset=o, error=e) for (o, e), r in clocks.items()],
        **facts,
    )


def _lines(header: Header, found: Iterator[dict[str, Any]]) -> Iterator[str]:
    """One event a line, so that a trace can be read and compared as text, too."""
    head = json.dumps(header.model_dump(mode="json"), ensure_ascii=False)
    yield f'{{"displayTimeUnit":"ns","otherData":{head},\n"traceEvents":[\n'
    separator = ""
    for event in found:
        yield separator + json.dumps(event, ensure_ascii=False, separators=(",", ":"))
        separator = ",\n"
    yield "\n]}\n"
