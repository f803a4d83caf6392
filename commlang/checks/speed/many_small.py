"""Many small messages that could be one (CL401).

A message costs a fixed time before its first byte: calls in Python and C++, a rendezvous, one or
more packets. Where several small ones go from the same rank to the same rank with nothing in
between, one of all their data saves all but one of these costs. So it is with collectives: a
hundred all_reduces of 1 KiB took 71 ms on gloo between two processes, and one of their 100 KiB 0.9.
Only runs of four or more of at most 64 KiB each are told.

Keep the data in one buffer and send a slice of it, or copy them into a `temp` first: a copy of so
few bytes costs next to nothing.

- For the same reason, [DDP reduces gradients in
  buckets](https://docs.pytorch.org/docs/2.13/notes/ddp.html)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from commlang.checks.rule import Rule
from commlang.checks.speed.costs import (
    COLLECTIVE_MS,
    MESSAGE_MS,
    POSTED_COLLECTIVE_MS,
    POSTED_MS,
    SMALL,
    milliseconds,
    size,
)
from commlang.checks.speed.data import bytes_of
from commlang.diagnostics import Diagnostic, Severity
from commlang.operations import Kind
from commlang.program.sorting import stable_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.program.columns import Array

FEWEST = 4

RULE = Rule(
    "CL401",
    "many-small-messages",
    Severity.ADVICE,
    invalid=(
        """\
# world: 2
pattern main(x: float32[rows, n], rows = 100, n = 256):
    for i in range(rows):
        x[i] @ 0 -> x[i] @ 1  # CL401
""",
        """\
pattern main(x: float32[layers, n], layers = 100, n = 256):
    for i in range(layers):
        all_reduce(x[i])  # CL401
""",
    ),
    valid=(
        """\
# world: 2
pattern main(x: float32[rows, n], rows = 100, n = 256):
    x @ 0 -> x @ 1
""",
        """\
extern next(x: update float32[n]):
    cost 1ms

pattern main(x: float32[layers, n], layers = 100, n = 256):
    for i in range(layers):
        next(x[i])
        all_reduce(x[i])
""",
    ),
)


class _Run(NamedTuple):
    """Rows that could be one: on one rank, in their order."""

    rows: Array
    message: bool


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per statement, for its longest run."""
    longest: dict[int, _Run] = {}
    for run in (*_of_messages(facts), *_of_collectives(facts)):
        site = int(facts.program.site[run.rows[0]])
        if site not in longest or len(run.rows) > len(longest[site].rows):
            longest[site] = run
    for run in longest.values():
        yield _report(facts, run)


def _of_messages(facts: Facts) -> Iterator[_Run]:
    program, send, recv = facts.program, facts.messages.send, facts.messages.recv
    small = bytes_of(facts, send) <= SMALL if len(send) else np.zeros(0, dtype=np.bool_)
    send, recv = send[small], recv[small]
    order = np.lexsort((program.tag[send], program.group[send], program.peer[send]))
    order = order[stable_order(program.rank[send][order])]
    send, recv = send[order], recv[order]
    if len(send) < FEWEST:
        return
    # In this order the messages of a channel lie together, in the order of their issue.
    follows = np.ones(len(send) - 1, dtype=np.bool_)
    for column in (program.rank, program.peer, program.group, program.tag, _kinds(facts)):
        follows &= column[send[1:]] == column[send[:-1]]
    follows &= _beside(facts, send) & _beside(facts, recv)
    for start, stop in _stretches(follows):
        yield _Run(send[start:stop], True)


def _of_collectives(facts: Facts) -> Iterator[_Run]:
    program, calls = facts.program, facts.collectives
    count = len(calls.start) - 1
    if count < FEWEST:
        return
    first = calls.row[calls.start[:-1]]
    members = np.diff(calls.start)
    kind = program.kind[first]
    joins = (kind == Kind.ALL_REDUCE) | (kind == Kind.REDUCE) | (kind == Kind.BROADCAST)
    joins &= calls.whole & (bytes_of(facts, first) <= SMALL)
    follows = joins[1:] & joins[:-1] & (calls.group[1:] == calls.group[:-1])
    for column in (program.peer, _kinds(facts)):
        follows &= column[first[1:]] == column[first[:-1]]
    follows &= ~_same_data(facts, first[:-1], first[1:])
    near = np.flatnonzero(follows)
    if not len(near):
        return
    owner = np.repeat(np.arange(len(near)), members[near])
    ends = np.cumsum(members[near])
    within = np.arange(len(owner)) - np.repeat(ends - members[near], members[near])
    one = calls.row[calls.start[near][owner] + within]
    other = calls.row[calls.start[near + 1][owner] + within]
    apart = ~_pairs_beside(facts, one, other)
    follows[near[np.bincount(owner[apart], minlength=len(near)) > 0]] = False
    for start, stop in _stretches(follows):
        yield _Run(first[start:stop], False)


def _same_data(facts: Facts, one: Array, other: Array) -> Array:
    """Whether the first operands of two rows lie in one buffer and share elements."""
    program, ops = facts.program, facts.program.operands
    a, b = np.maximum(program.first[one], 0), np.maximum(program.first[other], 0)
    if not len(ops.buffer):
        return np.zeros(len(one), dtype=np.bool_)
    same = ops.buffer[a] == ops.buffer[b]
    return (
        same
        & (ops.offset[a] < ops.offset[b] + ops.length[b])
        & (ops.offset[b] < ops.offset[a] + ops.length[a])
    )


def _kinds(facts: Facts) -> Array:
    """Per row a number: equal for operations that one operation could do."""
    numbers: dict[object, int] = {}
    keys = [(s.kind, s.op, s.dtype, s.asynchronous) for s in facts.program.sites]
    table = [numbers.setdefault(key, len(numbers)) for key in keys]
    return np.array(table)[facts.program.site]


def _beside(facts: Facts, rows: Array) -> Array:
    return _pairs_beside(facts, rows[:-1], rows[1:])


def _pairs_beside(facts: Facts, one: Array, other: Array) -> Array:
    """Whether rows follow each other at once, or are in one `parallel:` and nothing is between."""
    program = facts.program
    nest, other_nest = program.nest[one], program.nest[other]
    listed = program.nests.look_up(nest)[0] if len(program.nests.key) else nest < -1
    together = (nest == other_nest) & (nest >= 0) & ~listed
    return together | ((other == one + 1) & (nest < 0) & (other_nest < 0))


def _stretches(follows: Array) -> Iterator[tuple[int, int]]:
    """Where so many follow one another that it pays: from which to which entry."""
    edge = np.diff(np.concatenate([[0], follows.astype(np.int8), [0]]))
    starts, stops = np.flatnonzero(edge > 0), np.flatnonzero(edge < 0) + 1
    long = stops - starts >= FEWEST
    yield from zip(starts[long].tolist(), stops[long].tolist(), strict=True)


def _report(facts: Facts, run: _Run) -> Diagnostic:
    program, row, count = facts.program, int(run.rows[0]), len(run.rows)
    site = program.site_of(row)
    each = bytes_of(facts, run.rows)
    posted = site.asynchronous or bool(program.nest[row] >= 0)
    if run.message:
        cost = POSTED_MS if posted else MESSAGE_MS
        what, one = "messages", f"rank {program.rank[row]} to rank {program.peer[row]}"
    else:
        cost = POSTED_COLLECTIVE_MS if posted else COLLECTIVE_MS
        what, one = (
            f"{site.name}s",
            f"group `{program.groups.entries[int(program.group[row])].label}`",
        )
    where = "from" if run.message else "on"
    message = f"{count} {what} of at most {size(int(each.max()))} {where} {one} could be one"
    saved = milliseconds((count - 1) * cost)
    notes = (
        f"one of {size(int(each.sum()))} would save about {saved}, if each costs {cost:.2g} ms "
        "beside its data, as on gloo between two processes",
    )
    hint = "use one slice of a buffer that holds all of them, or copy them into a `temp` first"
    return Diagnostic(
        RULE.code, message, (facts.label(row),), notes, hint, severity=Severity.ADVICE
    )
