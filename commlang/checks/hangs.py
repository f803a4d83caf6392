"""Rings of waits in a program's graphs, found once for the rules that tell them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.ring import waits
from commlang.records import record
from commlang.transports import Backend, NcclInit, rendezvous
from commlang.transports.aligned import aligned
from commlang.transports.events import Events
from commlang.transports.issue import issue
from commlang.transports.nccl import Nccl

if TYPE_CHECKING:
    from commlang.checks.facts import Facts
    from commlang.checks.ring import Wait
    from commlang.transports.events import Graph


@record
class Deadlock:
    """The ring of a program under rendezvous semantics; both are empty if there is none.

    A `certain` one hangs everywhere, a `possible` one only if the members of some rooted
    collective wait for more than its data.
    """

    certain: list[Wait]
    possible: list[Wait]

    def __bool__(self) -> bool:
        return bool(self.certain or self.possible)


def find_deadlock(facts: Facts) -> Deadlock:
    """The deadlock of a program in which everything meets."""
    if not facts.everything_meets or facts.aligned:
        return Deadlock([], [])
    return Deadlock(*_rings(facts.events))


def _rings(events: Events) -> tuple[list[Wait], list[Wait]]:
    strict = rendezvous.graph(events)
    cycle = strict.cycle()
    if cycle is None:
        return [], []
    loose = rendezvous.graph(events, rooted_meet=False)
    certain = loose.cycle()
    if certain is not None:
        return waits(loose.edges, certain), []
    return [], waits(strict.edges, cycle)


@record
class Hang:
    """A ring under a model of NCCL that is none under rendezvous semantics.

    `certain` is false if it closes only where the members of a rooted collective wait for more
    than its data; `hosts` tells whether hosts wait in it for communicators to be made.
    """

    nccl: Nccl
    graph: Graph
    ring: list[Wait]
    certain: bool = True
    hosts: bool = False


def nccl_models(facts: Facts) -> tuple[Nccl, ...]:
    """The models that a target asks for: of NCCL the one of its init, of no backend both."""
    backend = facts.target.backend
    if backend not in (None, Backend.NCCL):
        return ()
    events = Events(facts.program, facts.tagged, facts.collectives, facts.points)
    issued = issue(events)
    if backend is Backend.NCCL:
        return (Nccl(events, issued, facts.target.nccl_init),)
    eager = Nccl(events, issued, NcclInit.EAGER)
    if not (facts.program.is_message & ~issued.batched).any():
        return (eager,)  # nothing runs on communicators of pairs
    return (eager, Nccl(events, issued, NcclInit.LAZY))


def order_hang(facts: Facts) -> Hang | None:
    """How the program hangs on NCCL although it ends under rendezvous semantics."""
    if facts.lockstep:
        return None
    for nccl in ordered_models(facts):
        if _aligned(facts, nccl):
            continue
        graph = nccl.issue_order()
        cycle = graph.cycle()
        if cycle is None:
            continue
        loose = nccl.issue_order(rooted_meet=False)
        certain = loose.cycle()
        if certain is not None:
            graph, cycle = loose, certain
        hosts = any(graph.between_hosts(edge) for edge in cycle)
        return Hang(nccl, graph, waits(graph.edges, cycle), certain is not None, hosts)
    return None


def queue_hang(facts: Facts) -> Hang | None:
    """How it hangs only if a device runs its communicators one after the other."""
    return _hazard(facts, "one_queue")


def batch_hang(facts: Facts) -> Hang | None:
    """How it hangs only if batches start as a whole."""
    return _hazard(facts, "whole_batches")


def _hazard(facts: Facts, model: str) -> Hang | None:
    if facts.target.backend is not Backend.NCCL or facts.lockstep or facts.nccl_hang is not None:
        return None
    for nccl in ordered_models(facts):
        if model == "one_queue" and not nccl.many_queues:
            continue
        if model == "whole_batches" and not nccl.issue.batched.any():
            continue
        if _aligned(facts, nccl):
            continue
        graph: Graph = getattr(nccl, model)()
        cycle = graph.cycle()
        if cycle is not None:
            return Hang(nccl, graph, waits(graph.edges, cycle))
    return None


def ordered_models(facts: Facts) -> list[Nccl]:
    """Models under which every operation meets, of a program that ends without buffers."""
    if not facts.everything_meets or facts.deadlock:
        return []
    return [nccl for nccl in facts.nccl_models if not len(nccl.messages.lone)]


def _aligned(facts: Facts, nccl: Nccl) -> bool:
    if nccl.messages is facts.messages:
        return facts.aligned
    program = facts.program
    return aligned(Events(program, nccl.messages, facts.collectives, facts.points))
