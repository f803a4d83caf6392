"""Who meets whom: messages by channel, collectives by group, both in issue order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.operations import Kind
from commlang.program.sorting import combine, occurrence, stable_order
from commlang.records import record

if TYPE_CHECKING:
    from commlang.program.columns import Array, Program


@record
class Messages:
    """Sends and the recvs that they meet: `send[i]` with `recv[i]`.

    `partner` gives, for every row, the row at the other end, -1 for none. `lone` are sends and
    recvs that nothing meets.
    """

    send: Array
    recv: Array
    partner: Array
    lone: Array


@record
class Collectives:
    """Calls that meet: `row[start[i] : start[i + 1]]` are the calls of instance i.

    They are sorted by the members' places in the group; `whole` tells whether all are there.
    `group` and `turn` (how many calls on the group came before) say which instance it is.
    """

    row: Array
    start: Array
    group: Array
    turn: Array
    whole: Array


def match_messages(program: Program, *, tagged: bool = True, lane: Array | None = None) -> Messages:
    """Match the i-th send with the i-th recv of each channel (group, source, destination, tag).

    If not `tagged`, tags are ignored; `lane` parts channels further, by a small number per row.
    """
    send = np.flatnonzero(program.kind == Kind.SEND)
    recv = np.flatnonzero(program.kind == Kind.RECV)
    tag = program.tag if tagged else np.zeros_like(program.tag)
    if lane is not None:
        tag = tag.astype(np.int64) * (int(lane.max(initial=0)) + 1) + lane
    channel_s = _channel(program, tag, send, program.rank[send], program.peer[send])
    channel_r = _channel(program, tag, recv, program.peer[recv], program.rank[recv])
    order_s, order_r = stable_order(channel_s), stable_order(channel_r)
    send, recv = send[order_s], recv[order_r]
    channel_s, channel_r = channel_s[order_s], channel_r[order_r]
    partner = np.full(len(program), -1, dtype=np.int32)
    lone = np.zeros(0, dtype=np.int64)
    if not np.array_equal(channel_s, channel_r):
        met_s, met_r = _met(channel_s, channel_r)
        lone = np.sort(np.concatenate([send[~met_s], recv[~met_r]]))
        send, recv = send[met_s], recv[met_r]
    partner[send], partner[recv] = recv, send
    return Messages(send, recv, partner, lone)


def _channel(program: Program, tags: Array, rows: Array, source: Array, target: Array) -> Array:
    columns = [
        (program.group[rows], len(program.groups.entries)),
        (target, program.world),
        (source, program.world),
    ]
    bound = int(tags.max(initial=0)) + 1
    if bound > 1:
        columns.insert(1, (tags[rows], bound))
    return combine(columns)


def _met(a: Array, b: Array) -> tuple[Array, Array]:
    """Of two sorted columns with repeats, which entries have a counterpart by number."""
    _, number = np.unique(np.concatenate([a, b]), return_inverse=True)
    number = number.reshape(-1)
    size = len(a) + len(b) + 1
    one = number[: len(a)] * size + occurrence(a)
    two = number[len(a) :] * size + occurrence(b)
    return np.isin(one, two), np.isin(two, one)


def match_collectives(program: Program) -> Collectives:
    """Match the i-th call on a group by each of its members."""
    row = np.flatnonzero(program.is_collective)
    group, rank = program.group[row].astype(np.int64), program.rank[row]
    caller = group * program.world + rank
    order = stable_order(caller)
    turn = np.empty(len(row), dtype=np.int64)
    turn[order] = occurrence(caller[order])
    place = np.asarray(program.groups.position(group, rank)) if len(row) else row
    turns, places = int(turn.max(initial=0)) + 1, program.world
    order = stable_order(
        combine([(group, int(group.max(initial=0)) + 1), (turn, turns), (place, places)])
    )
    row, group, turn = row[order], group[order], turn[order]
    fresh = np.ones(len(row), dtype=np.bool_)
    fresh[1:] = (group[1:] != group[:-1]) | (turn[1:] != turn[:-1])
    first = np.flatnonzero(fresh)
    start = np.append(first, len(row))
    size = np.asarray(program.groups.size(group[first])) if len(row) else row
    return Collectives(row, start, group[first], turn[first], np.diff(start) == size)


def all_meet(program: Program, messages: Messages, calls: Collectives) -> bool:
    """Whether nothing waits for a counterpart that never comes, or is of another kind or root."""
    return not len(messages.lone) and bool(calls.whole.all()) and agree(program, calls)


def agree(program: Program, calls: Collectives) -> bool:
    """Whether all calls that meet are of one kind and name one root."""
    first = calls.row[calls.start[:-1]]
    instance = np.repeat(np.arange(len(first)), np.diff(calls.start))
    return all(
        bool((column[calls.row] == column[first][instance]).all())
        for column in (program.kind, program.peer)
    )
