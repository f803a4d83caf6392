"""Moves: flows and calls cell by cell, in the order in which they happen; and how they are run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.contracts import field
from commlang.contracts.actions import (
    Act,
    Action,
    finished,
    inverted,
    prepared,
    rounding_key,
    scaled,
)
from commlang.contracts.addresses import MAX_CELLS, TooLarge
from commlang.contracts.flows import EARLY, LATE, PHASES
from commlang.contracts.functions import weights
from commlang.contracts.regions import spread
from commlang.program.sorting import stable_order
from commlang.records import record

if TYPE_CHECKING:
    from commlang.contracts.flows import Builder, Flows
    from commlang.contracts.regions import Cells
    from commlang.contracts.work import Ports, Work
    from commlang.program.columns import Array

MAX_MOVES = 2 * MAX_CELLS
_READ, _MAKE = Action(Act.READ), Action(Act.MAKE)


@record
class Moves:
    """Move i acts with `extra[i]` from cell `source[i]` on cell `target[i]`, as event `row[i]`.

    Those from `bounds[j]` to `bounds[j + 1]` belong to one moment and do what action `code[j]` is.
    """

    source: Array
    target: Array
    extra: Array
    row: Array
    bounds: Array
    code: Array
    actions: tuple[Action, ...]


def expand(builder: Builder, flows: Flows, work: Work, moment: Array, cells: Cells) -> Moves:
    """The moves of a program whose regions are known."""
    parts = [_of_flows(flows, cells)]
    if len(work.seed):
        reads = _of_ports(work.reads, EARLY, builder.code(_READ), moment, cells)
        makes = _of_ports(work.writes, LATE, builder.code(_MAKE), moment, cells)
        source, target = reads[1], len(cells) + work.reads.call[reads[-1]]
        parts.append((source, target, *reads[2:-1]))
        source, target = len(cells) + work.writes.call[makes[-1]], makes[1]
        parts.append((source, target, *makes[2:-1]))
    source, target, extra, row, when, code = (
        parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
    )
    key = when * len(builder.actions) + code
    order = stable_order(key) if len(key) else np.zeros(0, dtype=np.int64)
    key = key[order]
    fresh = np.ones(len(key), dtype=np.bool_)
    fresh[1:] = key[1:] != key[:-1]
    bounds = np.flatnonzero(fresh)
    return Moves(
        source[order],
        target[order],
        extra[order],
        row[order],
        np.append(bounds, len(key)),
        code[order][bounds],
        tuple(builder.actions),
    )


def _of_flows(flows: Flows, cells: Cells) -> tuple[Array, ...]:
    first, count = cells.expand(flows.source, flows.length)
    if int(count.sum()) > MAX_MOVES:
        raise TooLarge("its slices cut the messages into too many regions")
    source, owner = spread(first, count)
    target, _ = spread(cells.first(flows.target), count)
    columns = (flows.extra, flows.row, flows.when, flows.code)
    return source, target, *(column[owner] for column in columns)


def _of_ports(
    ports: Ports, phase: int, code: int, moment: Array, cells: Cells
) -> tuple[Array, ...]:
    """What calls read or write: twice the cell, a number for its place, …, and the port."""
    first, count = cells.expand(ports.start, ports.length)
    if int(count.sum()) > MAX_MOVES:
        raise TooLarge("its slices cut the data of calls into too many regions")
    cell, owner = spread(first, count)
    place = ports.place[owner] + cells.cuts[cell] - ports.start[owner]
    extra = weights(place, ports.operand[owner], written=phase == LATE)
    row = ports.row[owner].astype(np.int32)
    when = moment[row] * PHASES + phase
    return cell, cell, extra, row, when, np.full(len(cell), code, dtype=np.int16), owner


def run(moves: Moves, values: Array) -> None:
    """Do all moves on the values of the cells."""
    bounds: list[int] = moves.bounds.tolist()
    codes: list[int] = moves.code.tolist()
    for low, high, code in zip(bounds[:-1], bounds[1:], codes, strict=True):
        step(
            moves.actions[code],
            values,
            moves.source[low:high],
            moves.target[low:high],
            moves.extra[low:high],
        )


def step(action: Action, values: Array, source: Array, target: Array, extra: Array) -> None:
    """Do moves of one action that happen at once."""
    match action.act:
        case Act.COPY:
            values[target] = prepared(action, values[source])
        case Act.ACCUMULATE:
            assert action.op is not None
            combine = field.FOLDS[action.op]
            values[target] = combine(values[target], prepared(action, values[source]))
        case Act.REDUCE:
            _reduce(action, values, source, target)
        case Act.SCALE:
            if action.factor is not None and rounding_key(action.factor, action.target):
                values[target] = scaled(values[target], action.factor, action.target)
            else:
                values[target] = field.multiply(values[target], extra)
        case Act.FILL | Act.CALL:
            values[target] = extra
        case Act.INVERT:
            values[target] = inverted(action, values[target])
        case Act.FORGET:
            values[target] = field.mix(field.mix(target) ^ extra, 3)
        case Act.READ:
            _read(values, source, target, extra)
        case Act.MAKE:
            values[target] = field.mix(values[source] ^ extra, 4)


def tables(target: Array) -> list[tuple[Array, Array]]:
    """Moves by target: per number of moves, the targets and a table of the indices of theirs."""
    if not len(target):  # of empty tensors
        return []
    order = stable_order(target)
    ordered = target[order]
    start = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    size = np.diff(np.append(start, len(ordered)))
    found: list[tuple[Array, Array]] = []
    for width in sorted(set(size.tolist())):
        chosen = start[size == width]
        found.append((ordered[chosen], order[chosen[:, None] + np.arange(width)]))
    return found


def _reduce(action: Action, values: Array, source: Array, target: Array) -> None:
    assert action.op is not None
    for cell, index in tables(target):
        terms = prepared(action, values[source[index]])
        values[cell] = finished(action, field.fold(action.op, terms))


def _read(values: Array, source: Array, target: Array, extra: Array) -> None:
    for cell, index in tables(target):
        terms = field.multiply(values[source[index]], extra[index])
        values[cell] = field.add(values[cell], field.fold(field.SUM, terms))
