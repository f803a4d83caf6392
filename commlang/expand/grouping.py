"""`group` and `mesh`: from lists of ranks to numbered groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.expand import arrays, functions
from commlang.expand.arrays import is_int
from commlang.expand.fault import fail
from commlang.expand.values import Group, item

if TYPE_CHECKING:
    from commlang.expand.arrays import Array, Int
    from commlang.expand.scope import Scope
    from commlang.syntax import ast


def make_group(node: ast.Group, ranks: Group, sequence: Any, scope: Scope, label: str) -> Group:
    """The group whose members a list names, as ranks of the pattern that runs."""
    matrix, sizes = _members(node, ranks, sequence, scope)
    table = ranks.table
    frames = arrays.broadcast(ranks.frame, len(matrix))
    rows = np.concatenate([frames[:, None], sizes[:, None], matrix], axis=1)
    unique, lane_row = np.unique(rows, axis=0, return_inverse=True)
    gids: list[int] = []
    for row in unique:
        frame, size, members = int(row[0]), int(row[1]), row[2 : 2 + int(row[1])]
        if not size:
            fail(scope, node, "CL122", "a group without members")
        if len(set(members.tolist())) != size:
            fail(scope, node, "CL122", "a rank stands in the group twice")
        world = table.member(frame, members)
        gids.append(table.add(label, tuple(np.asarray(world).tolist())))
    gid = arrays.squeeze(np.asarray(gids, dtype=np.int64)[lane_row.reshape(-1)])
    if isinstance(gid, int) or len(gid) == scope.lanes:
        _check_agreement(node, gid, ranks, scope)
    return Group(gid, table, ranks.frame)


def _members(node: ast.Group, ranks: Group, sequence: Any, scope: Scope) -> tuple[Array, Array]:
    """Per lane (one row if all agree), the members padded with -1, and how many there are."""
    size = ranks.length
    columns: list[Array] = []
    uniform = isinstance(sequence.length, int) and isinstance(ranks.frame, int)
    for i, live in functions.positions(sequence):
        value = item(sequence, i)
        if not is_int(value):
            fail(scope, node, "CL103", "a group is a list of ranks")
        bad = ((value < 0) | (value >= size)) & live
        if arrays.anywhere(bad):
            message = "a member is no rank of the pattern"
            fail(scope, node, "CL116", message, lanes=bad)
        uniform = uniform and isinstance(value, int)
        columns.append(np.where(live, value, -1))
    lanes = 1 if uniform else scope.lanes
    matrix = np.full((lanes, len(columns)), -1, dtype=np.int64)
    for i, column in enumerate(columns):
        matrix[:, i] = column
    return matrix, arrays.broadcast(sequence.length, lanes)


def _check_agreement(node: ast.Group, gid: Int, ranks: Group, scope: Scope) -> None:
    """Every member of a group must itself name that group, in the same iteration."""
    if isinstance(gid, int):
        return
    world = ranks.table.world
    place = scope.instance * world + scope.ranks
    order = np.argsort(place)
    numbers: list[int] = np.unique(gid).tolist()
    for number in numbers:
        lanes = np.flatnonzero(gid == number)
        members = np.asarray(ranks.table.entries[number].members)
        wanted = (place - scope.ranks)[lanes, None] + members
        at = np.minimum(np.searchsorted(place, wanted, sorter=order), len(order) - 1)
        lane_of = order[at]
        others = np.argwhere((place[lane_of] == wanted) & (gid[lane_of] != number))
        if len(others):
            lane, other = int(lanes[others[0][0]]), int(members[others[0][1]])
            rank = int(scope.ranks[lane])
            message = f"rank {rank} names rank {other} as a member, but rank {other} names others"
            fail(scope, node, "CL122", message, lanes=np.arange(scope.lanes) == lane)


def mesh_axis(
    node: ast.Mesh, ranks: Group, size: Int, stride: Int, scope: Scope, label: str
) -> Group:
    """Per lane, its group along one axis of a mesh: the ranks `stride` apart."""
    table = ranks.table
    rank = table.position(ranks.frame, scope.ranks)
    start = rank - rank // stride % size * stride
    columns = [arrays.broadcast(v, scope.lanes) for v in (ranks.frame, start, size, stride)]
    unique, lane_row = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    axes: list[list[int]] = unique.tolist()
    gids = [
        table.add(
            label, tuple(np.asarray(table.member(frame, first + np.arange(many) * step)).tolist())
        )
        for frame, first, many, step in axes
    ]
    gid = arrays.squeeze(np.asarray(gids, dtype=np.int64)[lane_row.reshape(-1)])
    return Group(gid, table, ranks.frame)
