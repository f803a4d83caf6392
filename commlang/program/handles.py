"""Which wait joins which asynchronous operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.expand.arrays import broadcast
from commlang.program.columns import Array, Handles

if TYPE_CHECKING:
    from commlang.expand.record import Chunk, Recording

NEVER = np.iinfo(np.int64).max
_NO_INDEX = np.iinfo(np.int64).min


def number_handles(recording: Recording, rows: list[Array], rank: Array) -> Handles:
    """Number the handles of all rows that bind or join one."""
    picked = [(c, r) for c, r in zip(recording.chunks, rows, strict=True) if c.handle is not None]
    if not picked:
        none = np.zeros(0, dtype=np.int64)
        return Handles(none, none, none, none.astype(np.bool_), none.astype(np.bool_), none)
    row = np.concatenate([r for _, r in picked])
    depth = max(len(c.handle.indices or ()) for c, _ in picked if c.handle)
    names: dict[str, int] = {}
    parts: list[Array] = []
    for chunk, _ in picked:
        parts.append(_identity(chunk, names, depth))
    table = np.concatenate(parts)
    name = _combine([rank[row], *table[:, :3].T])
    full = _combine([name, *table[:, 3:].T]) if depth else name
    is_wait = np.concatenate(
        [np.full(c.scope.lanes, not recording.sites[c.site].asynchronous) for c, _ in picked]
    )
    wildcard = np.concatenate(
        [
            np.full(c.scope.lanes, c.handle is not None and c.handle.indices is None)
            for c, _ in picked
        ]
    )
    deadline = np.concatenate([_deadline(recording, c) for c, _ in picked])
    return Handles(row, full, name, is_wait, wildcard, deadline)


def _identity(chunk: Chunk, names: dict[str, int], depth: int) -> Array:
    """Per lane: the frame (how deep, and where it starts), the name and the indices."""
    handle, lanes = chunk.handle, chunk.scope.lanes
    assert handle is not None
    columns = [
        broadcast(len(handle.frame.frame.path), lanes),
        broadcast(chunk.scope.key_of(handle.frame, 0), lanes),
        broadcast(names.setdefault(handle.name, len(names)), lanes),
        *(broadcast(i, lanes) for i in handle.indices or ()),
    ]
    padding = [broadcast(_NO_INDEX, lanes)] * (3 + depth - len(columns))
    return np.stack([*columns, *padding], axis=1)


def _combine(columns: list[Array]) -> Array:
    """One number per row, equal for rows that agree in all columns."""
    result = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values, index = np.unique(column, return_inverse=True)
        if len(values) > 1:
            result = np.unique(result * len(values) + index.reshape(-1), return_inverse=True)[1]
            result = result.reshape(-1)
    return result


def _deadline(recording: Recording, chunk: Chunk) -> Array:
    """The key at which the first temp ends that an async event uses."""
    scope = chunk.scope
    deadline = np.full(scope.lanes, NEVER, dtype=np.int64)
    if not recording.sites[chunk.site].asynchronous:
        return deadline
    bases = np.array([b.base for b in recording.buffers])
    for operand in chunk.operands:
        buffers = np.unique(np.asarray(operand.view.buffer))
        blocks = np.unique(np.searchsorted(bases, buffers, side="right") - 1)
        for block in (recording.buffers[int(number)] for number in blocks):
            if block.scope is None:
                continue
            mine = (operand.view.buffer >= block.base) & (
                operand.view.buffer < block.base + block.count
            )
            end = scope.key_of(block.scope, block.scope.stride or block.scope.slots)
            if operand.count is None:
                deadline = np.where(mine, np.minimum(deadline, end), deadline)
            elif np.any(mine):
                deadline = np.minimum(deadline, end)
    return deadline


def join(handles: Handles, count: int) -> Array:
    """For each async row, the first wait after it that joins its handle; -1 for none."""
    wait = np.full(count, -1, dtype=np.int64)
    binds = ~handles.is_wait
    rows = handles.row[binds]
    exact = _next(handles.full[binds], rows, handles, handles.is_wait & ~handles.wildcard, count)
    broad = _next(
        handles.name[binds], rows, handles, handles.is_wait & handles.wildcard, count, names=True
    )
    found = np.minimum(exact, broad)
    wait[rows] = np.where(found == NEVER, -1, found)
    return wait


def rebinding(handles: Handles, count: int) -> Array:
    """For each row that binds a handle (in the order of `row[~is_wait]`), the next that does."""
    binds = ~handles.is_wait
    return _next(handles.full[binds], handles.row[binds], handles, binds, count)


def _next(
    number: Array, rows: Array, handles: Handles, chosen: Array, count: int, *, names: bool = False
) -> Array:
    """For each (handle number, row), the next chosen row of that handle; NEVER for none."""
    other = (handles.name if names else handles.full)[chosen]
    order = np.sort(other * (count + 1) + handles.row[chosen])
    if not len(order):
        return np.full(len(rows), NEVER, dtype=np.int64)
    at = np.searchsorted(order, number * (count + 1) + rows, side="right")
    candidate = order[np.minimum(at, len(order) - 1)]
    valid = (at < len(order)) & (candidate // (count + 1) == number)
    return np.where(valid, candidate % (count + 1), NEVER)
