"""Programs that no model can make hang, recognised without a graph.

Most patterns are lockstep: the ends of every message and the calls of every collective stand in
one statement of one iteration, and no member comes to its next statement in between. Running the
statements one after the other, in the order of their keys, is then a run that serves every queue
in issue order and starts every batch as a whole; so there is a run under every model of this
folder that starts operations where they are issued, and (matching being fixed) all runs end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.operations import Kind

if TYPE_CHECKING:
    from commlang.program.columns import Array, Program
    from commlang.transports.events import Events

_LAST = np.iinfo(np.int64).max


def aligned(events: Events) -> bool:
    """Whether all operations meet, and in lockstep. (False says nothing.)"""
    program, messages, calls = events.program, events.messages, events.collectives
    if len(program.nests.key) or len(messages.lone) or not calls.whole.all():
        return False
    unit, following, strict = _units(program)
    for one, other in ((messages.send, messages.recv), (messages.recv, messages.send)):
        if not (unit[one] < following[other]).all():
            return False
    in_batch = program.nest[messages.send] >= 0
    in_batch |= program.nest[messages.recv] >= 0
    if (unit[messages.send] != unit[messages.recv])[in_batch].any():
        return False
    if len(calls.start) < 2:
        return True
    row, first = calls.row, calls.start[:-1]
    latest = np.maximum.reduceat(unit[row], first)
    if not (latest < np.minimum.reduceat(following[row], first)).all():
        return False
    key = program.key[row]
    apart = np.maximum.reduceat(key, first) != np.minimum.reduceat(key, first)
    return not (apart & np.logical_or.reduceat(strict[row], first)).any()


def _units(program: Program) -> tuple[Array, Array, Array]:
    """Per row its statement's key (a `parallel:` is one), the next on its rank, and `strict`.

    A statement with collectives beside other operations is strict: its parts must correspond.
    """
    rows = np.flatnonzero(program.kind <= Kind.BARRIER)
    unit = np.where(program.nest >= 0, program.nest, program.key)
    following = np.full(len(program), _LAST)
    strict = np.zeros(len(program), dtype=np.bool_)
    if not len(rows):
        return unit, following, strict
    own, rank = unit[rows], program.rank[rows]
    fresh = np.ones(len(rows), dtype=np.bool_)
    fresh[1:] = (own[1:] != own[:-1]) | (rank[1:] != rank[:-1])
    first = np.flatnonzero(fresh)
    size = np.diff(np.append(first, len(rows)))
    after = np.full(len(first), _LAST)
    same = rank[first[1:]] == rank[first[:-1]]
    after[:-1][same] = own[first[1:]][same]
    following[rows] = np.repeat(after, size)
    collective = program.is_collective[rows]
    mixed = (size > 1) & np.logical_or.reduceat(collective, first)
    strict[rows] = np.repeat(mixed, size)
    return unit, following, strict
