"""Messages: a send or recv that nothing meets, and two ends that disagree.

**Unmatched (CL202, CL203).** Messages match in issue order per channel: the group, the sending
rank, the receiving rank and the tag. A send without its recv waits for ever on a transport that
does not buffer; a recv without its send waits for ever on every transport.

**Size (CL204).** gloo aborts the receiving process if a message is larger than its buffer and
leaves the rest of the buffer untouched if it is smaller; NCCL hangs or corrupts.

**Dtype (CL205).** No backend compares dtypes: the bytes are reinterpreted silently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.diagnostics import Diagnostic
from commlang.operations import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.program.columns import Array

UNMATCHED = ("CL202", "CL203")
CODES = (*UNMATCHED, "CL204", "CL205")


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Unmatched messages first, then those whose ends disagree; one finding per pair of lines."""
    yield from _unmatched(facts)
    program = facts.program
    send, recv = facts.messages.send, facts.messages.recv
    if not len(send):
        return
    size_s = program.operands.length[program.first[send]]
    size_r = program.operands.length[program.first[recv]]
    for i, count in _per_pair(facts, send, recv, size_s != size_r):
        yield _size(facts, int(send[i]), int(recv[i]), int(size_s[i]), int(size_r[i]), count)
    names = {str(d): n for n, d in enumerate(program.site_dtype)}
    dtype = np.array([names[str(d)] for d in program.site_dtype])
    differs = dtype[program.site[send]] != dtype[program.site[recv]]
    for i, count in _per_pair(facts, send, recv, differs):
        yield _dtype(facts, int(send[i]), int(recv[i]), count)


def _per_pair(facts: Facts, one: Array, other: Array, wrong: Array) -> Iterator[tuple[int, int]]:
    """The first wrong message of each pair of statements, and how many more there are."""
    bad = np.flatnonzero(wrong)
    if not len(bad):
        return
    site = facts.program.site
    pair = site[one[bad]].astype(np.int64) * len(facts.program.sites) + site[other[bad]]
    _, first, count = np.unique(pair, return_index=True, return_counts=True)
    for i, many in zip(bad[first].tolist(), count.tolist(), strict=True):
        yield i, many - 1


def _more(count: int, what: str) -> tuple[str, ...]:
    name = what if count > 1 else what[:-1]
    return (f"and {count:,} more {name} of these lines",) if count else ()


def _unmatched(facts: Facts) -> Iterator[Diagnostic]:
    program = facts.program
    lone = facts.messages.lone
    sites, first, count = np.unique(program.site[lone], return_index=True, return_counts=True)
    del sites
    for row, many in zip(
        lone[np.sort(first)].tolist(), count[np.argsort(first)].tolist(), strict=True
    ):
        site = program.site_of(row)
        rank, peer = int(program.rank[row]), int(program.peer[row])
        is_send = site.kind is Kind.SEND
        verb, other = ("sends to", "recv") if is_send else ("receives from", "send")
        message = (
            f"unmatched {site.name}: {facts.event(row)} {verb} rank {peer}, "
            f"but no {other} there meets it"
        )
        more = _more(many - 1, f"{site.name}s")
        notes = (*_near_miss(facts, row, rank, peer), *more, *facts.origin(row))
        yield Diagnostic("CL202" if is_send else "CL203", message, (facts.label(row),), notes)


def _near_miss(facts: Facts, row: int, rank: int, peer: int) -> tuple[str, ...]:
    """Why the nearest candidates on the other rank do not match."""
    program = facts.program
    if peer not in program.ranks:
        return ()
    there = program.rows_of(peer)
    rows = np.arange(there.start, there.stop)
    wanted = Kind.RECV if program.kind[row] == Kind.SEND else Kind.SEND
    candidates = rows[(program.kind[rows] == wanted) & (program.peer[rows] == rank)]
    if not len(candidates):
        return (f"rank {peer} has no {wanted.name.lower()} with rank {rank} at all",)
    lone = candidates[facts.messages.partner[candidates] < 0]
    name = wanted.name.lower() + ("s" if len(candidates) > 1 else "")
    notes = [f"rank {peer} has {len(candidates)} {name} with rank {rank}"]
    for candidate in lone[:1].tolist():
        here, other = int(program.tag[row]), int(program.tag[candidate])
        if here != other:
            place = facts.place(candidate)
            notes.append(f"the {wanted.name.lower()} at {place} has tag {other}, this one {here}")
        elif program.group[row] != program.group[candidate]:
            labels = [program.groups.entries[int(program.group[r])].label for r in (row, candidate)]
            notes.append(
                f"the {wanted.name.lower()} at {facts.place(candidate)} is on group "
                f"`{labels[1]}`, this one on `{labels[0]}`"
            )
    if not len(lone):
        notes[0] += ", all met by others"
    return tuple(notes)


def _size(facts: Facts, send: int, recv: int, sent: int, room: int, more: int) -> Diagnostic:
    message = (
        f"message of {sent} elements from {facts.event(send)} into a buffer of {room} "
        f"on {facts.event(recv)}"
    )
    why = (
        "gloo aborts the receiving process; NCCL hangs or corrupts"
        if sent > room
        else "the rest of the buffer stays as it was, silently"
    )
    labels = (facts.label(recv, f"{room} elements"), facts.label(send, f"{sent} elements"))
    return Diagnostic("CL204", message, labels, (why, *_more(more, "messages")))


def _dtype(facts: Facts, send: int, recv: int, more: int) -> Diagnostic:
    sites = facts.program.site_of(send), facts.program.site_of(recv)
    message = (
        f"message of {sites[0].dtype} from {facts.event(send)} into {sites[1].dtype} "
        f"on {facts.event(recv)}"
    )
    labels = (facts.label(recv, str(sites[1].dtype)), facts.label(send, str(sites[0].dtype)))
    notes = ("no backend compares dtypes: the bytes are reinterpreted", *_more(more, "messages"))
    hint = "cast into a temp of the other dtype first: `x -> cast`"
    return Diagnostic("CL205", message, labels, notes, hint)
