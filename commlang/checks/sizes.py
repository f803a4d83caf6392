"""Whether the sizes of a collective fit between its members.

Flat forms must simply be equal. A list entry for member j must have the size of what member j
gives or takes; for all_to_all, what i sends to j is what j expects from i.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.operations import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.program.columns import Array, Program
    from commlang.program.matching import Collectives

_FLAT = {Kind.ALL_GATHER: 2, Kind.REDUCE_SCATTER: 2, Kind.ALL_TO_ALL: 2}


def size_faults(program: Program, calls: Collectives) -> Iterator[tuple[int, int]]:
    """Each instance (of whole ones) whose sizes disagree, with a row that shows it."""
    if not len(calls.row):
        return
    row = calls.row
    instance = np.repeat(np.arange(len(calls.start) - 1), np.diff(calls.start))
    kind = program.kind[row]
    listed = program.count[row] > 2
    has_list = np.zeros(len(calls.start) - 1, dtype=np.bool_)
    has_list[instance[listed]] = True
    plain = _piece(program, row, kind)
    first = plain[calls.start[:-1]][instance]
    uneven = (kind == Kind.ALL_GATHER) | (kind == Kind.REDUCE_SCATTER) | (kind == Kind.ALL_TO_ALL)
    wrong = (plain != first) & ~(uneven & has_list[instance])
    found = dict(zip(instance[wrong][::-1].tolist(), row[wrong][::-1].tolist(), strict=True))
    mixed = np.zeros(len(has_list), dtype=np.bool_)  # operations that differ have no size to share
    mixed[instance[kind != kind[calls.start[:-1]][instance]]] = True
    for number in np.flatnonzero(has_list & calls.whole & ~mixed).tolist():
        bad = _listed_fault(program, row[calls.start[number] : calls.start[number + 1]])
        if bad is not None:
            found.setdefault(number, bad)
    yield from found.items()


def _piece(program: Program, row: Array, kind: Array) -> Array:
    """Per call the size that all members share in the flat form."""
    length, first = program.operands.length, program.first[row]
    if not len(length):
        return np.zeros(len(row), dtype=np.int64)
    safe = np.maximum(first, 0)
    size = np.where(first >= 0, length[safe], 0)
    last = np.minimum(safe + np.maximum(program.count[row] - 1, 0), len(length) - 1)
    from_last = (kind == Kind.ALL_GATHER) | (kind == Kind.GATHER)
    return np.where(from_last & (first >= 0), length[last], size)


def _listed_fault(program: Program, rows: Array) -> int | None:
    """The first call of an instance whose list does not fit what the members give or take."""
    kind = Kind(int(program.kind[rows[0]]))
    size = len(rows)
    if kind is Kind.ALL_TO_ALL:
        return _transposed_fault(program, rows)
    if kind not in (Kind.ALL_GATHER, Kind.REDUCE_SCATTER):
        return None
    piece = _piece(program, rows, program.kind[rows])
    skip = 0 if kind is Kind.ALL_GATHER else 1
    for row in rows.tolist():
        first, count = int(program.first[row]), int(program.count[row])
        if count == 2:
            whole = program.operands.length[first + skip]
            entries = np.full(size, whole // size)
        else:
            entries = program.operands.length[first + skip : first + skip + size]
        if not np.array_equal(entries, piece):
            return row
    return None


def _transposed_fault(program: Program, rows: Array) -> int | None:
    pair = unequal_pair(program, rows)
    return None if pair is None else int(rows[pair[0]])


def unequal_pair(program: Program, rows: Array) -> tuple[int, int, int, int] | None:
    """The first two members of an all_to_all that disagree: receiver, sender, expected, sent."""
    size = len(rows)
    table = np.empty((2, size, size), dtype=np.int64)
    for i, row in enumerate(rows.tolist()):
        first, count = int(program.first[row]), int(program.count[row])
        lengths = program.operands.length[first : first + count]
        table[:, i] = lengths.reshape(2, size) if count == 2 * size else lengths[:, None] // size
    expected, sent = table[0], table[1].T
    wrong = np.argwhere(expected != sent)
    if not len(wrong):
        return None
    receiver, sender = int(wrong[0][0]), int(wrong[0][1])
    return receiver, sender, int(expected[receiver, sender]), int(sent[receiver, sender])


def elements(count: int) -> str:
    """`1 element`, `8 elements`."""
    return f"{count} element{'' if count == 1 else 's'}"
