"""Passes: programs that do the same in less time, each checked as the program itself was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from commlang.checks import check_program
from commlang.checks.selection import Selection
from commlang.diagnostics import Severity
from commlang.records import record
from commlang.schedule.batches import batched
from commlang.schedule.chunks import Chunk, chunks, split
from commlang.schedule.coalesce import Bucket, buckets
from commlang.schedule.overlap import overlap, unfit
from commlang.transports import RENDEZVOUS, Backend, NcclInit, Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlang.program import Program

Schedule = Literal["program", "overlap"]

CHUNK, OVERLAP, BY_GROUP, BATCH = "chunk", "overlap", "overlap by group", "batch"
COALESCE = "coalesce"

_ORDER = Selection(select=("CL20", "CL21", "CL22", "CL230", "CL231", "CL25"))
"""Rules on what a new order could break: matching, hangs, handles and races."""
_COUNT = (Severity.ERROR, Severity.WARNING)
_ON_NCCL = tuple(Target(Backend.NCCL, init) for init in NcclInit)


@record
class Scheduled:
    """A program after the passes that were applied, and why others were not.

    `chunks` are what was split, `buckets` the collectives that coalescing makes one; the program
    has the former split and the latter still apart.
    """

    program: Program
    passes: tuple[str, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    buckets: tuple[Bucket, ...] = ()
    refused: tuple[str, ...] = ()


def schedule(program: Program, target: Target, wanted: Schedule) -> Scheduled:
    """Apply what a schedule asks for to a program of all ranks that has been checked.

    A pass after which the checker finds something is not applied. It is asked for the target; if
    that leaves open what the ranks will run on, also for NCCL, unless the program as it is written
    has findings there.
    """
    if wanted == "program":
        return Scheduled(program)
    hindrance = unfit(program)
    if hindrance:
        return Scheduled(program, refused=(f"{OVERLAP}: {hindrance}",))
    targets = _targets(program, target)
    refused: list[str] = []
    for passes, listed in _attempts(program, refused):
        found = apply(program, passes, listed)
        why = _objection(found, targets)
        if why is None:
            return _finished(found, passes, listed, refused, target)
        refused.append(f"{' and '.join(passes)}: {why}")
    return Scheduled(program, refused=tuple(refused))


def _targets(program: Program, target: Target) -> tuple[Target, ...]:
    if target.backend not in (None, Backend.RENDEZVOUS):
        return (target,)
    clean = (on for on in _ON_NCCL if _objection(program, (on,)) is None)
    return (RENDEZVOUS, *clean)


def _attempts(
    program: Program, refused: list[str]
) -> Iterator[tuple[tuple[str, ...], tuple[Chunk, ...]]]:
    """Passes in the order in which they are worth trying."""
    found = chunks(program)
    if isinstance(found, str):
        refused.append(f"{CHUNK}: {found}")
    else:
        yield (CHUNK, OVERLAP), tuple(found)
        yield (CHUNK, BY_GROUP), tuple(found)
    yield (OVERLAP,), ()
    yield (BY_GROUP,), ()


def _objection(program: Program, targets: Sequence[Target]) -> str | None:
    """What the checker says of an order, on the first target on which it says something."""
    for target in targets:
        found = [d for d in check_program(program, target, _ORDER) if d.severity in _COUNT]
        if found:
            return f"the check says of the new order: {found[0].message}"
    return None


def _finished(
    program: Program,
    passes: tuple[str, ...],
    listed: tuple[Chunk, ...],
    refused: list[str],
    target: Target,
) -> Scheduled:
    """Batches and buckets of an order that was accepted."""
    if target.backend is Backend.NCCL:
        together = batched(program)
        why = "no messages are neighbours" if together is None else _objection(together, (target,))
        if together is None or why:
            refused.append(f"{BATCH}: {why}")
        else:
            program, passes = together, (*passes, BATCH)
    found = buckets(program)
    if isinstance(found, str):
        return Scheduled(program, passes, listed, (), (*refused, f"{COALESCE}: {found}"))
    return Scheduled(program, (*passes, COALESCE), listed, tuple(found), tuple(refused))


def apply(program: Program, passes: Sequence[str], listed: Sequence[Chunk] = ()) -> Program:
    """The program of some ranks as passes that are fit for it leave it."""
    if CHUNK in passes:
        program = split(program, listed)
    if OVERLAP in passes or BY_GROUP in passes:
        program = overlap(program, by_group=BY_GROUP in passes)
    if BATCH in passes:
        program = batched(program) or program
    return program
