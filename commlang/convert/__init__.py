"""From what other programs write to patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.convert.actions import WEIGHTS
from commlang.convert.lower import add_send_recv, defer_recv
from commlang.convert.meetings import swaps
from commlang.convert.order import check_order
from commlang.convert.pipeline import pipeline_pattern
from commlang.convert.placement import place_stages
from commlang.convert.schedule import parse_schedule, read_schedule
from commlang.convert.weights import add_weights
from commlang.errors import UsageError
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.convert.schedule import Schedule

__all__ = ["Conversion", "parse_schedule", "pattern_from_schedule", "read_schedule"]


@record
class Conversion:
    """The text of a pattern file, and what is to be said of the schedule that it came from."""

    text: str
    warnings: list[str]


def pattern_from_schedule(
    schedule: Schedule,
    stages: str | None = None,
    *,
    lower: bool = False,
    defer: bool = False,
    blocking: bool = False,
) -> Conversion:
    """A pattern that does what torch does with a pipeline schedule.

    `stages` says which rank holds a stage (see `place_stages`). `lower` adds the sends and
    receives to a schedule of computations, `defer` moves its receives down, both as torch does.
    `blocking` ends each message before the next action starts. Raises UsageError, with the place
    in the schedule, for one that torch would refuse or whose ranks would compute on garbage.
    """
    at = place_stages(schedule, stages)
    if lower and schedule.communicates():
        raise UsageError(f"{schedule.path} has sends and receives already; leave out --lower")
    if not (lower or schedule.communicates() or len(set(at)) == 1):
        raise UsageError(f"{schedule.path} has no sends and receives; --lower adds them")
    check_order(schedule, at)
    if lower and not schedule.uses(*WEIGHTS):
        schedule = add_weights(schedule)
    if lower:
        schedule = add_send_recv(schedule, at)
    if defer:
        schedule = defer_recv(schedule, at)
    return Conversion(pipeline_pattern(schedule, at, blocking=blocking), _swapped(schedule, at))


def _swapped(schedule: Schedule, at: Sequence[int]) -> list[str]:
    """A warning for the first receive that gets another's message, if any does."""
    found = swaps(schedule, at)
    if not found:
        return []
    first = found[0]
    more = f"; {len(found) - 1} more receives are mixed up" if len(found) > 1 else ""
    return [
        f"{schedule.where(first.rank, first.index)}: on rank {first.rank}, `{first.recv}` gets "
        f"what `{first.got}` sent, since messages between two ranks come in the order in which "
        f"they are sent{more}"
    ]
