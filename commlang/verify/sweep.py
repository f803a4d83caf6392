"""Many worlds, each decided: which fail, which a pattern does not take, and what holds in all."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from commlang.errors import CommlangError
from commlang.records import record
from commlang.verify.affine import Matching, matching
from commlang.verify.outcome import identity
from commlang.verify.shapes import listed, shape
from commlang.verify.worlds import about_world

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from commlang.diagnostics import Diagnostic
    from commlang.resolve.modules import Definition
    from commlang.verify.outcome import Key

    Check = Callable[[int, int], list[Diagnostic]]
    """All findings in a world, which may expand to so many events."""

    Progress = Callable[[int, int], None]
    """Told how many worlds of how many are done."""

LIMIT = "CL120"
"""The code of what is too large to expand."""

FORK_FROM = 6
"""Fewer worlds than this are not worth a start of processes."""


@record
class Verdict:
    """What a world came to."""

    world: int
    keys: tuple[Key, ...] = ()
    """What was found, without the texts."""
    refusal: Key | None = None
    """What of the pattern does not take this world, if something does not, and `reason` why."""
    reason: str = ""
    limited: bool = False
    """Whether it is too large to be decided."""


@record
class Refusal:
    """Worlds that a pattern does not take, with the reason that it gives for the first."""

    worlds: tuple[int, ...]
    reason: str


@record
class Sweep:
    """What was decided of one pattern, with worlds in order, and of all worlds."""

    definition: Definition
    checked: tuple[int, ...]
    refused: tuple[Refusal, ...]
    undecided: tuple[int, ...]
    """Worlds too large for the limit on events; a finding says so too."""
    matching: Matching

    def describe(self) -> str:
        """`ring.cl:1:9: `ring` was checked in worlds 2..64; …`."""
        where = self.definition.module.source.where(self.definition.node.target.span)
        return f"{where}: `{self.definition.node.name}` " + "; ".join(self._parts())

    def _parts(self) -> Iterator[str]:
        worlds = f"worlds {listed(self.checked)}" if self.checked else "no world"
        yield f"was checked in {worlds}"
        every = sorted(
            {*self.checked, *self.undecided, *(w for r in self.refused for w in r.worlds)}
        )
        for refusal in self.refused:
            yield f"not applicable: {shape(refusal.worlds, every)} ({refusal.reason})"
        if self.undecided:
            yield f"too large to decide: {shape(self.undecided, every)}"
        if self.matching is Matching.PROVEN:
            yield "point-to-point matching is proven for every world that it accepts"
        else:
            yield "nothing is said of other worlds"


def sweep(
    definition: Definition,
    worlds: Sequence[int],
    check: Check,
    max_events: int,
    progress: Progress | None = None,
) -> tuple[Sweep, list[Diagnostic]]:
    """Decide every world; each finding is told once, for the smallest world in which it is found.

    Worlds are shared out to processes where that is safe. No more than `max_events` are expanded
    at a time, all processes together. Raises CommlangError if one of them dies.
    """
    verdicts: list[Verdict] = []
    for verdict in _verdicts(definition, worlds, check, max_events):
        verdicts.append(verdict)
        if progress is not None:
            progress(len(verdicts), len(worlds))
    verdicts.sort(key=lambda verdict: verdict.world)
    result = Sweep(
        definition,
        tuple(v.world for v in verdicts if not v.refusal and not v.limited),
        tuple(_refusals(verdicts)),
        tuple(v.world for v in verdicts if v.limited),
        matching(definition),
    )
    return result, list(_findings(verdicts, check, max_events))


def _refusals(verdicts: Sequence[Verdict]) -> Iterator[Refusal]:
    by_place: defaultdict[Key, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.refusal:
            by_place[verdict.refusal].append(verdict)
    for alike in by_place.values():
        yield Refusal(tuple(v.world for v in alike), alike[0].reason)


def _findings(verdicts: Sequence[Verdict], check: Check, max_events: int) -> Iterator[Diagnostic]:
    """Each finding in its smallest world, with the worlds of all like it."""
    places: defaultdict[Key, list[int]] = defaultdict(list)
    for verdict in verdicts:
        for key in verdict.keys:
            places[key].append(verdict.world)
    checked = [v.world for v in verdicts if not v.refusal]
    for first in sorted({worlds[0] for worlds in places.values()}):
        seen: set[Key] = set()
        for found in check(first, max_events):
            key = identity(found)
            worlds = places.get(key, [])
            if worlds[:1] != [first] or key in seen:
                continue
            seen.add(key)
            many = f"{len(worlds):,} of the {len(checked):,} checked ({listed(checked)})"
            told = f"in {shape(worlds, checked)}: {many}"
            extra = {**found.extra, "worlds": worlds, "checked": checked}
            yield replace(found, notes=(*found.notes, told), extra=extra)


# --------------------------------------------------------------------- deciding


def _decide(definition: Definition, world: int, check: Check, max_events: int) -> Verdict:
    found = check(world, max_events)
    for diagnostic in found:
        if about_world(diagnostic, definition):
            return Verdict(world, refusal=identity(diagnostic), reason=diagnostic.message)
    keys = dict.fromkeys(identity(diagnostic) for diagnostic in found)
    return Verdict(world, tuple(keys), limited=any(d.code == LIMIT for d in found))


def _verdicts(
    definition: Definition, worlds: Sequence[int], check: Check, max_events: int
) -> Iterator[Verdict]:
    workers = min(_cpus(), len(worlds))
    if workers < 2 or len(worlds) < FORK_FROM or not _may_fork():
        for world in worlds:
            yield _decide(definition, world, check, max_events)
        return
    late: list[int] = []
    share = max(1, max_events // workers)
    for verdict in _forked(definition, worlds, check, share, workers):
        if verdict.limited:
            late.append(verdict.world)
        else:
            yield verdict
    for world in late:  # one at a time, with all the events that there may be
        yield _decide(definition, world, check, max_events)


def _cpus() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _may_fork() -> bool:
    """Whether this process may be copied: it has one thread, and no torch, which starts more."""
    alone = threading.active_count() == 1 and "torch" not in sys.modules
    return alone and sys.platform == "linux"


class _Job:
    """What a process works on: set in it when it is forked, so that nothing is pickled."""

    current: tuple[Definition, Check, int]


def _start(definition: Definition, check: Check, max_events: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the parent says what there is to say
    _Job.current = (definition, check, max_events)


def _work(world: int) -> Verdict:
    definition, check, max_events = _Job.current
    return _decide(definition, world, check, max_events)


def _forked(
    definition: Definition, worlds: Sequence[int], check: Check, max_events: int, workers: int
) -> Iterator[Verdict]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("fork")
    before = multiprocessing.active_children()
    pool = ProcessPoolExecutor(workers, context, _start, (definition, check, max_events))
    try:
        # Large worlds first: the small ones then fill the gaps at the end.
        futures = [pool.submit(_work, world) for world in sorted(worlds, reverse=True)]
        for future in as_completed(futures):
            yield future.result()
        pool.shutdown()
    except BrokenProcessPool:
        hint = "check fewer worlds at a time, or lower --max-events"
        raise CommlangError(
            f"a process that checked worlds died, perhaps for memory; {hint}"
        ) from None
    finally:
        for child in multiprocessing.active_children():
            if child not in before:
                child.terminate()
        pool.shutdown(cancel_futures=True)
