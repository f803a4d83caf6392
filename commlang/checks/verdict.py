"""Whether a program ends, in one word: what the rules on hangs say together."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from commlang.checks.facts import gather_facts
from commlang.checks.hangs import batch_hang
from commlang.operations import Kind
from commlang.transports import RENDEZVOUS, Backend, mpi

if TYPE_CHECKING:
    from commlang.checks.facts import Facts
    from commlang.program import Program
    from commlang.transports import Target


class Verdict(StrEnum):
    """What becomes of a run, on any machine and with any timing."""

    ENDS = "ends"
    HANGS = "hangs"
    DEPENDS = "depends on the implementation"


def decide(program: Program, target: Target = RENDEZVOUS) -> Verdict:
    """Whether a program ends on a target; for no backend, under rendezvous semantics.

    HANGS also stands for runs that fail where members disagree in kind, DEPENDS for those that
    hang only where a rooted collective waits for more than its data or has several roots, where
    MPI does not buffer, or where NCCL is short of resources or sets up connections. Sizes, dtypes
    and races are no part of it.
    """
    facts = gather_facts(program, target)
    if not facts.everything_meets:
        return _astray(facts)
    if facts.deadlock.certain:
        buffers = target.backend is Backend.MPI and facts.capacity is not None
        return Verdict.DEPENDS if buffers else Verdict.HANGS
    chosen = facts.nccl_models if target.backend is Backend.NCCL else ()
    if any(len(nccl.messages.lone) for nccl in chosen):
        return Verdict.HANGS
    if facts.deadlock.possible:
        return Verdict.DEPENDS
    if target.backend is Backend.NCCL:
        return _on_nccl(facts)
    if target.backend is Backend.MPI and _held_up(facts):
        return Verdict.DEPENDS
    return Verdict.ENDS


def _astray(facts: Facts) -> Verdict:
    """Where something never comes: whoever needs it, and waits for it, hangs."""
    program, calls = facts.program, facts.collectives
    waited = facts.points.end >= 0
    number = np.repeat(np.arange(len(calls.start) - 1), np.diff(calls.start))
    kind = program.kind[calls.row]
    # Members that name several roots may, by the shape of a tree, still wait for the same ranks.
    mixed = kind != program.kind[calls.row[calls.start[:-1]]][number]
    if waited[facts.messages.lone].any() or mixed.any():
        return Verdict.HANGS
    missing = ~calls.whole[number]
    row, number = calls.row[missing], number[missing]
    kind = program.kind[row]
    rooted = (kind >= Kind.REDUCE) & (kind <= Kind.GATHER)
    at_root = program.rank[row] == program.peer[row]
    with_root = np.zeros(len(calls.start), dtype=np.bool_)
    with_root[number[at_root]] = True
    # Of a rooted collective, a root that gathers lacks data, or a leaf whose root does not call.
    inward = (kind == Kind.REDUCE) | (kind == Kind.GATHER)
    starved = ~rooted | (inward & at_root) | (~inward & ~with_root[number])
    return Verdict.HANGS if (waited[row] & starved).any() else Verdict.DEPENDS


def _on_nccl(facts: Facts) -> Verdict:
    if facts.nccl_hang is not None:
        return Verdict.HANGS if facts.nccl_hang.certain else Verdict.DEPENDS
    hazard = facts.nccl_queue_hang is not None or batch_hang(facts) is not None
    return Verdict.DEPENDS if hazard else Verdict.ENDS


def _held_up(facts: Facts) -> bool:
    events = facts.events
    if not len(mpi.deferred(events)):
        return False
    return any(mpi.graph(events, first).hangs() for first in mpi.orders(events))
