"""Passes: programs that do the same in less time, each checked as the program itself was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from commlang.checks import check_program
from commlang.checks.selection import Selection
from commlang.diagnostics import Severity
from commlang.records import record
from commlang.schedule.coalesce import Bucket, buckets
from commlang.schedule.overlap import overlap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.program import Program
    from commlang.transports import Target

Schedule = Literal["program", "overlap"]

OVERLAP, COALESCE = "overlap", "coalesce"

_ORDER = Selection(select=("CL20", "CL21", "CL22", "CL230", "CL231", "CL25"))
"""Rules on what a new order could break: matching, hangs, handles and races."""
_COUNT = (Severity.ERROR, Severity.WARNING)


@record
class Scheduled:
    """A program after the passes that were applied, and why others were not.

    `buckets` are the collectives that coalescing makes one; the program still has them apart.
    """

    program: Program
    passes: tuple[str, ...] = ()
    buckets: tuple[Bucket, ...] = ()
    refused: tuple[str, ...] = ()


def schedule(program: Program, target: Target, wanted: Schedule) -> Scheduled:
    """Apply what a schedule asks for to a program of all ranks that has been checked.

    A pass after which the checker finds something for the target is not applied.
    """
    if wanted == "program":
        return Scheduled(program)
    result = overlap(program)
    if isinstance(result, str):
        return _refused(program, result)
    found = [d for d in check_program(result, target, _ORDER) if d.severity in _COUNT]
    if found:
        return _refused(program, f"the check says of the new order: {found[0].message}")
    listed = buckets(result)
    if isinstance(listed, str):
        return Scheduled(result, (OVERLAP,), refused=(f"{COALESCE}: {listed}",))
    return Scheduled(result, (OVERLAP, COALESCE), tuple(listed))


def _refused(program: Program, why: str) -> Scheduled:
    return Scheduled(
        program, refused=(f"{OVERLAP}: {why}", f"{COALESCE}: {OVERLAP} was not applied")
    )


def apply(program: Program, passes: Sequence[str]) -> Program:
    """The program of some ranks as passes that were found to be sound leave it."""
    if OVERLAP not in passes:
        return program
    result = overlap(program)
    assert not isinstance(result, str), result
    return result
