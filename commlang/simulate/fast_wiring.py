"""The wiring of a program without nested branches, in two looks at each row: for numba to compile.

It finds what `wiring.by_columns` finds with sorts. Messages are numbered otherwise, channel after
channel in the order in which channels come up; no time depends on that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from commlang.program.columns import Array, Program

_NO = np.int64(-1)


class Rows(NamedTuple):
    """Columns of a program, and what its sites are to the engine (`role`, `later`: async)."""

    rank_start: Array
    rank: Array
    key: Array
    nest: Array
    site: Array
    peer: Array
    tag: Array
    group: Array
    wait: Array
    role: Array
    later: Array
    world: int
    tags: int


def rows_of(program: Program, roles: Array) -> Rows | None:
    """The columns, or None if branches are nested or channels have no number of 62 bits."""
    tags, world = int(program.tag.max(initial=0)) + 1, program.world
    channels = len(program.groups.entries) * tags * world * world
    if len(program.nests.key) or channels >= 1 << 62 or program.tag.min(initial=0) < 0:
        return None
    return Rows(
        program.rank_start,
        program.rank,
        program.key,
        program.nest,
        program.site,
        program.peer,
        program.tag,
        program.group,
        program.wait,
        roles[program.site_kind],
        program.site_async,
        world,
        tags,
    )


# One function, as `kernel.walk` is and for the same reason.
def wire_rows(rows: Any, roles: tuple[int, int], slots: int, out: Any) -> int:  # noqa: C901
    """Fill `out`, columns as of `Wiring`; returns how many messages meet, -1 if some do not.

    `roles` are those of sends and recvs; `slots`, a power of two, is more than twice the channels,
    else -2 is returned, and `out` is to be used again.
    """
    start, end, after, role, link, pointer, pending, last, send, recv, queued = out
    send_role, recv_role = roles
    table, number = np.zeros(slots, dtype=np.int64), np.zeros(slots, dtype=np.int32)
    sends, recvs = np.zeros(slots // 2, dtype=np.int32), np.zeros(slots // 2, dtype=np.int32)
    channels, point = 0, -1
    for r in range(len(rows.rank_start) - 1):
        point += 1
        unit = _NO
        for row in range(rows.rank_start[r], rows.rank_start[r + 1]):
            nest = rows.nest[row]
            own = rows.key[row] if nest < 0 else nest
            if unit < 0:
                pointer[point] = row
            elif own != unit:
                point += 1
                pointer[point] = row
            unit = own
            start[row] = point
            site = rows.site[row]
            kind = rows.role[site]
            role[row] = kind
            if kind in (send_role, recv_role):
                src = rows.rank[row] if kind == send_role else rows.peer[row]
                dst = rows.peer[row] if kind == send_role else rows.rank[row]
                lane = np.int64(rows.group[row]) * rows.tags + rows.tag[row]
                key = (lane * rows.world + dst) * rows.world + src + 1
                mixed = (key ^ key >> 31) & 0x7FFFFFFF  # 31 bits times 32 do not overflow
                at = (mixed * 0x9E3779B1 >> 16) & (slots - 1)
                while table[at] != 0 and table[at] != key:
                    at = (at + 1) & (slots - 1)
                if table[at] == 0:
                    table[at] = key
                    number[at] = channels
                    channels += 1
                    if 2 * channels >= slots:
                        return -2
                link[row] = number[at]
                if kind == send_role:
                    sends[number[at]] += 1
                else:
                    recvs[number[at]] += 1
        if unit >= 0:
            point += 1
        pointer[point] = rows.rank_start[r + 1]
        last[r] = point
    total = 0
    for c in range(channels):
        if sends[c] != recvs[c]:
            return -1
        size, sends[c], recvs[c] = sends[c], total, total
        total += size
        if size:
            queued[total - size] = False
    for row in range(len(start)):
        kind = role[row]
        site = rows.site[row]
        if kind == send_role:
            m = sends[link[row]]
            sends[link[row]] += 1
            send[m], link[row] = row, m
        elif kind == recv_role:
            m = recvs[link[row]]
            recvs[link[row]] += 1
            recv[m], link[row] = row, m
        if rows.later[site]:
            after[row] = start[row] + 1
            pending[start[row] + 1] += 1
            wait = rows.wait[row]
            end[row] = start[wait] + 1 if wait >= 0 else -1
        else:
            after[row] = -1
            end[row] = start[row] + 1
        if end[row] >= 0:
            pending[end[row]] += 1
    return total
