"""What the engine walks: a program's rows, points, messages and calls as plain columns.

Times are decided at program points (`commlang.program.points`, local events included). A point is
reached when everything that ends at it has ended; the rows that start at it then start. A message
moves once both ends have started, a call of a collective once all members have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from commlang.errors import PatternError, UsageError
from commlang.operations import Kind
from commlang.program.matching import all_meet, match_collectives, match_messages
from commlang.program.points import find_points
from commlang.program.sorting import is_sorted, stable_order

if TYPE_CHECKING:
    from commlang.program.columns import Array, Program
    from commlang.program.matching import Collectives

LOCAL, SEND, RECV, CALL = range(4)
"""What a row is to the engine; a wait is a local row that takes no time."""

_ROLES = np.array(
    [SEND, RECV, *[CALL] * (Kind.BARRIER - Kind.RECV), *[LOCAL] * (Kind.WAIT - Kind.BARRIER)],
    dtype=np.int8,
)


class Wiring(NamedTuple):
    """The structure of a program, without any times.

    - rows that start at point p: `order[pointer[p] : pointer[p + 1]]`, where an empty `order`
      stands for the rows themselves;
    - per row: `start`, the point at which it starts; `end`, the one that waits for it to end, -1
      for none; `after`, for asynchronous rows the point that waits for its issue, else -1; `role`,
      one of `LOCAL` to `CALL`; `link`, its message or its call, else -1;
    - per message: its rows `send` and `recv`; `queued`, whether it moves after the message before
      it, which is one of the same channel;
    - per call: its rows `member[first[c] : first[c + 1]]`; `before`, the call of the same group
      that must be over, -1 for none.

    Points below `chained` follow one another, rank by rank; `last` are those that end a rank.
    """

    pointer: Array
    order: Array
    start: Array
    end: Array
    after: Array
    role: Array
    link: Array
    send: Array
    recv: Array
    queued: Array
    member: Array
    first: Array
    before: Array
    last: Array
    chained: int

    @property
    def points(self) -> int:
        """How many points there are."""
        return len(self.pointer) - 1


def wire(program: Program) -> Wiring:
    """The wiring of a whole, verified program; raises PatternError if something is never met."""
    if len(program.ranks) != program.world:
        raise UsageError("only a program of all ranks can be simulated")
    messages, calls = match_messages(program), match_collectives(program)
    if not all_meet(program, messages, calls):
        refuse(program)
    points = find_points(program, local=True)
    start, end, after = (c.astype(np.int32) for c in (points.start, points.end, points.after))
    link = np.full(len(program), -1, dtype=np.int32)
    number = np.arange(len(messages.send), dtype=np.int32)
    link[messages.send], link[messages.recv] = number, number
    instance = np.repeat(np.arange(len(calls.start) - 1, dtype=np.int32), np.diff(calls.start))
    link[calls.row] = instance
    later = program.site_async[program.site] if len(program) else np.zeros(0, dtype=np.bool_)
    outside = start < points.chained
    return Wiring(
        pointer=np.concatenate([[0], np.cumsum(np.bincount(start, minlength=points.count))]),
        order=np.zeros(0, dtype=np.int64) if is_sorted(start) else stable_order(start),
        start=start,
        end=end,
        after=np.where(later, after, np.int32(-1)),
        role=_ROLES[program.kind],
        link=link,
        send=messages.send,
        recv=messages.recv,
        queued=_queued(program, messages.send, messages.recv, outside),
        member=calls.row,
        first=calls.start,
        before=_before(calls, outside),
        last=points.last,
        chained=points.chained,
    )


def _queued(program: Program, send: Array, recv: Array, outside: Array) -> Array:
    """Whether each message has one of its channel before it, and both are issued in that order.

    In branches that run side by side, issue may go another way than the text.
    """
    queued = np.zeros(len(send), dtype=np.bool_)
    if len(send) > 1:
        queued[1:] = True
        for column in (program.group, program.tag, program.rank, program.peer):
            value = column[send]
            queued[1:] &= value[1:] == value[:-1]
        flat = outside[send] & outside[recv]
        queued[1:] &= flat[1:] & flat[:-1]
    return queued


def _before(calls: Collectives, outside: Array) -> Array:
    """For each call the one before it on its group, if all members issue them in that order."""
    count = len(calls.start) - 1
    before = np.full(count, -1, dtype=np.int32)
    if count > 1:
        flat = np.logical_and.reduceat(outside[calls.row], calls.start[:-1])
        follows = (calls.group[1:] == calls.group[:-1]) & flat[1:] & flat[:-1]
        before[1:][follows] = np.flatnonzero(follows)
    return before


def refuse(program: Program) -> Any:
    """Raise PatternError with what the checks find in a program that cannot end."""
    from commlang.checks import check_program
    from commlang.diagnostics import Severity

    found = [d for d in check_program(program) if d.severity is Severity.ERROR]
    if found:
        raise PatternError(found)
    raise UsageError(f"`{program.name}` never ends, so there is nothing to time")
