"""When the events of a program happen: planned, simulated or measured, in one form for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.records import record

if TYPE_CHECKING:
    from commlang.program.columns import Array


@record
class Timing:
    """When each row of a program starts and ends, in seconds from a zero that all ranks share.

    `start` and `end` have one entry per row and are NaN where a time is not known. An asynchronous
    row lasts from its issue to the end of the operation itself; the row that waits for it, from
    when the rank comes to it until it goes on. `origin` says in a few words where the times come
    from: "program order", "simulated on dgx-h100", "measured".
    """

    start: Array
    end: Array
    origin: str
