"""Operations that the backend refuses: what the rules on support share.

A statement is asked about once, not per event. Without a backend it is told only if no backend of
torch does it, so that a pattern for one of them is no finding for those who have not chosen yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from commlang.operations import Kind
from commlang.transports import Backend
from commlang.transports.support import LOCAL, Aspect, backings, called, refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.expand.record import Site

_LOCAL_KINDS = (Kind.COPY, Kind.ACCUMULATE, Kind.SCALE, Kind.FILL)
_ORDER = (Aspect.OP, Aspect.DTYPE, Aspect.OPERATION, Aspect.DEVICE)
"""Where backends differ in why, the reason that a reader can do most about."""
_NAMES = {"nccl": "NCCL", "mpi": "MPI", "ucc": "UCC"}


class Refusal(NamedTuple):
    """A statement that is refused: its first event, who refuses it, what was called, and why."""

    row: int
    backends: tuple[str, ...]
    operation: str
    aspect: Aspect

    @property
    def who(self) -> str | None:
        """The only one who was asked, as prose calls it."""
        return _NAMES.get(self.backends[0], self.backends[0]) if len(self.backends) == 1 else None

    @property
    def lacks(self) -> str:
        """`gloo has no`, or `no backend has`."""
        return f"{self.who} has no" if self.who else "no backend has"

    @property
    def why(self) -> str:
        """What comes of it."""
        everywhere = "" if self.backends == (LOCAL,) else " on every rank"
        return f"the call fails with an error{everywhere}"


def find_refusals(facts: Facts) -> list[Refusal]:
    """Statements that the target refuses, each place once."""
    program = facts.program
    found: dict[object, Refusal] = {}
    first: dict[int, int] | None = None
    for number, site in enumerate(program.sites):
        for uneven in _forms(facts, number, site):
            told = _ask(facts, site, uneven=uneven)
            if told is None:
                continue
            first = first_rows(facts) if first is None else first
            if number in first:
                place = (site.source.path, site.span, site.dtype, site.op and site.op.op)
                found.setdefault(place, Refusal(first[number], *told))
            break
    return list(found.values())


def refused(facts: Facts, aspect: Aspect) -> Iterator[Refusal]:
    """The refusals that one rule tells."""
    return (refusal for refusal in facts.refusals if refusal.aspect is aspect)


def first_rows(facts: Facts) -> dict[int, int]:
    """The first event of each site that has any."""
    site = facts.program.site
    first = np.full(len(facts.program.sites), -1, dtype=np.int64)
    first[site[::-1]] = np.arange(len(site) - 1, -1, -1)
    return {number: row for number, row in enumerate(first.tolist()) if row >= 0}


def _ask(facts: Facts, site: Site, *, uneven: bool) -> tuple[tuple[str, ...], str, Aspect] | None:
    """Who refuses a statement, as what it is called, and why; None if somebody does it."""
    local = site.kind in _LOCAL_KINDS
    if not local and not (site.kind.is_message or site.kind.is_collective):
        return None
    dtype = site.dtype.name if site.dtype else None
    op = site.op.op if site.op else None
    target = facts.target
    candidates = [(LOCAL, target.device_type)] if local else _candidates(facts)
    whys: set[Aspect] = set()
    for backend, device in candidates:
        operation = called(site.name, backend, uneven=uneven)
        why = refusal(backend, operation, dtype, op, device, target.torch)
        if why is None:
            return None
        whys.add(why)
    backends = tuple(dict.fromkeys(backend for backend, _ in candidates))
    operation = called(site.name, backends[0], uneven=uneven)
    return backends, operation, next(why for why in _ORDER if why in whys)


def _candidates(facts: Facts) -> list[tuple[str, str]]:
    """The backends, with devices, of which one has to do it."""
    target = facts.target
    if target.backend not in (None, Backend.RENDEZVOUS):
        return [(str(target.backend), target.device_type)]
    known = [(name, backing) for name, backing in backings().items() if name != LOCAL]
    devices = [target.device_type] if target.device else ["cpu", "cuda"]
    pairs = [(name, device) for name, backing in known for device in backing.devices]
    return [(name, device) for name, device in pairs if device in devices]


def _forms(facts: Facts, number: int, site: Site) -> list[bool]:
    """Whether a statement's lists are even, uneven or, in different events, both."""
    if called(site.name, "", uneven=True) == called(site.name, ""):
        return [False]
    if _ask(facts, site, uneven=True) == _ask(facts, site, uneven=False):
        return [False]
    program = facts.program
    rows = np.flatnonzero(program.site == number)
    if not len(rows):
        return [False]
    first, count = program.first[rows], program.count[rows]
    skip = 0 if site.kind is not Kind.REDUCE_SCATTER else 1
    each = count - (site.kind is not Kind.ALL_TO_ALL)
    start = np.cumsum(each) - each
    at = np.arange(int(each.sum())) - np.repeat(start - first - skip, each)
    length = program.operands.length[at]
    differs = np.maximum.reduceat(length, start) != np.minimum.reduceat(length, start)
    return sorted(set(differs.tolist()))
