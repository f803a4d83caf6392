"""Sends and recvs that nothing meets: what the two rules on them share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.diagnostics import Diagnostic
from commlang.operations import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts

_VERBS = {Kind.SEND: ("sends to", "recv"), Kind.RECV: ("receives from", "send")}


def unmatched(facts: Facts, kind: Kind, code: str) -> Iterator[Diagnostic]:
    """One finding per statement of that kind, with how many more of its messages are alone."""
    program = facts.program
    lone = facts.messages.lone
    lone = lone[program.kind[lone] == kind]
    if not len(lone):
        return
    _, first, count = np.unique(program.site[lone], return_index=True, return_counts=True)
    order = np.argsort(first)
    verb, other = _VERBS[kind]
    for row, many in zip(lone[first[order]].tolist(), count[order].tolist(), strict=True):
        name, peer = program.site_of(row).name, int(program.peer[row])
        message = (
            f"unmatched {name}: {facts.event(row)} {verb} rank {peer}, "
            f"but no {other} there meets it"
        )
        notes = (*_near_miss(facts, row), *more(many - 1, f"{name}s"), *facts.origin(row))
        yield Diagnostic(code, message, (facts.label(row),), notes)


def more(count: int, what: str) -> tuple[str, ...]:
    """A note of further events of the same lines, if there are any; `what` is their plural."""
    name = what if count > 1 else what[:-1]
    return (f"and {count:,} more {name} of these lines",) if count else ()


def _near_miss(facts: Facts, row: int) -> tuple[str, ...]:
    """Why the nearest candidates on the other rank do not match."""
    program = facts.program
    rank, peer = int(program.rank[row]), int(program.peer[row])
    if peer not in program.ranks:
        return ()
    there = program.rows_of(peer)
    rows = np.arange(there.start, there.stop)
    wanted = Kind.RECV if program.kind[row] == Kind.SEND else Kind.SEND
    candidates = rows[(program.kind[rows] == wanted) & (program.peer[rows] == rank)]
    name = wanted.name.lower()
    if not len(candidates):
        return (f"rank {peer} has no {name} with rank {rank} at all",)
    lone = candidates[facts.messages.partner[candidates] < 0]
    notes = [f"rank {peer} has {len(candidates)} {name}{'s' * (len(candidates) > 1)}"]
    notes[0] += f" with rank {rank}"
    for candidate in lone[:1].tolist():
        here, other = int(program.tag[row]), int(program.tag[candidate])
        place = facts.place(candidate)
        if here != other:
            notes.append(f"the {name} at {place} has tag {other}, this one {here}")
        elif program.group[row] != program.group[candidate]:
            labels = [program.groups.entries[int(program.group[r])].label for r in (row, candidate)]
            notes.append(
                f"the {name} at {place} is on group `{labels[1]}`, this one on `{labels[0]}`"
            )
    if not len(lone):
        notes[0] += ", all met by others"
    return tuple(notes)
