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
from commlang.program.matching import agree, match_collectives, match_messages
from commlang.program.points import find_points
from commlang.program.sorting import is_sorted, stable_order
from commlang.simulate.fast_wiring import Rows, rows_of, wire_rows

if TYPE_CHECKING:
    from commlang.program.columns import Array, Program
    from commlang.program.matching import Collectives

LOCAL, SEND, RECV, CALL = range(4)
"""What a row is to the engine; a wait is a local row that takes no time."""

_FEW, _MORE = 1 << 14, 1 << 5
"""How many channels are looked for at first, so that the processor's cache has room for them, and
how many times as many then."""

ROLES = np.array(
    [SEND, RECV, *[CALL] * (Kind.BARRIER - Kind.RECV), *[LOCAL] * (Kind.WAIT - Kind.BARRIER)],
    dtype=np.int8,
)


class Wiring(NamedTuple):
    """The structure of a program, without any times.

    - rows that start at point p: `order[pointer[p] : pointer[p + 1]]`, where an empty `order`
      stands for the rows themselves;
    - per point: `pending`, how many rows it waits for;
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
    pending: Array
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


def wire(program: Program, *, fast: bool = False) -> Wiring:
    """The wiring of a whole, verified program; raises PatternError if something is never met.

    With `fast`, it is made by numba where that is possible.
    """
    if len(program.ranks) != program.world:
        raise UsageError("only a program of all ranks can be simulated")
    calls = match_collectives(program)
    if not calls.whole.all() or not agree(program, calls):
        refuse(program)
    rows = rows_of(program, ROLES) if fast else None
    return _by_sorting(program, calls) if rows is None else _by_rows(program, calls, rows)


def _by_sorting(program: Program, calls: Collectives) -> Wiring:
    messages, points = match_messages(program), find_points(program, local=True)
    if len(messages.lone):
        refuse(program)
    start, end, after = (c.astype(np.int32) for c in (points.start, points.end, points.after))
    later = program.site_async[program.site] if len(program) else np.zeros(0, dtype=np.bool_)
    after = np.where(later, after, np.int32(-1))
    outside = start < points.chained
    send, recv = messages.send.astype(np.int32), messages.recv.astype(np.int32)
    link = np.full(len(program), -1, dtype=np.int32)
    link[send] = link[recv] = np.arange(len(send), dtype=np.int32)
    return Wiring(
        pointer=np.append(0, np.cumsum(np.bincount(start, minlength=points.count))).astype(
            np.int32
        ),
        order=(stable_order(start) if not is_sorted(start) else start[:0]).astype(np.int32),
        start=start,
        end=end,
        after=after,
        pending=_count(end, points.count) + _count(after, points.count),
        role=ROLES[program.kind],
        send=send,
        recv=recv,
        queued=_queued(program, send, recv, outside),
        last=points.last,
        chained=points.chained,
        **_of_calls(calls, link, outside),
    )


def _by_rows(program: Program, calls: Collectives, rows: Rows) -> Wiring:
    from commlang.simulate.compiled import compiled

    count, sends = len(program), int((program.kind == Kind.SEND).sum())
    start, end, after, link = (np.full(count, -1, dtype=np.int32) for _ in range(4))
    role = np.empty(count, dtype=np.int8)
    pointer, pending = (np.zeros(count + program.world + 1, dtype=np.int32) for _ in range(2))
    send, recv = (np.zeros(sends, dtype=np.int32) for _ in range(2))
    queued, last = np.ones(sends, dtype=np.bool_), np.zeros(program.world, dtype=np.int64)
    out = (start, end, after, role, link, pointer, pending, last, send, recv, queued)
    slots, met = _FEW, -2
    while met == -2 and slots <= max(
        _FEW, _MORE * (2 * sends + 2)
    ):  # more channels than sends never meet
        met = compiled(wire_rows)(rows, (SEND, RECV), slots, out)
        slots *= _MORE
    if met != sends:
        refuse(program)
    points = int(last[-1]) + 1
    pointer[points] = count
    return Wiring(
        pointer=pointer[: points + 1],
        order=start[:0],
        start=start,
        end=end,
        after=after,
        pending=pending[:points],
        role=role,
        send=send,
        recv=recv,
        queued=queued,
        last=last,
        chained=points,
        **_of_calls(calls, link, np.ones(count, dtype=np.bool_)),
    )


def _of_calls(calls: Collectives, link: Array, outside: Array) -> dict[str, Array]:
    """The columns of calls, and `link` with theirs."""
    if len(calls.row):
        instance = np.arange(len(calls.start) - 1, dtype=np.int32)
        link[calls.row] = np.repeat(instance, np.diff(calls.start))
    first, member = calls.start.astype(np.int32), calls.row.astype(np.int32)
    return {"link": link, "member": member, "first": first, "before": _before(calls, outside)}


def _count(points: Array, count: int) -> Array:
    """How many rows name each point."""
    return np.bincount(points[points >= 0], minlength=count).astype(np.int32)


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
