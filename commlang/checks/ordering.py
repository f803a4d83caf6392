"""Branches of one `parallel:` that share a channel or a group (CL210).

The children of a `parallel:` are issued in the order of the text, so several messages to one peer
match in that order. `sequence:` branches (and pattern calls) run side by side in no order: two of
them that send to one rank under one tag, or that call collectives of one group, would match by
chance. On gloo, two threads that call collectives of one group swap their data silently.

Give the messages of each branch a tag of their own, or each branch a group of its own, or take the
messages out of the `sequence:` so that the order of the text decides.

- [torch.distributed.send](https://docs.pytorch.org/docs/2.13/distributed.html), `tag`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Severity
from commlang.operations import Kind
from commlang.program.sorting import combine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.program.columns import Array

RULE = Rule(
    "CL210",
    "ambiguous-matching",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    parallel:
        sequence:
            all_reduce(x)  # CL210
        sequence:
            all_reduce(y)
""",
    ),
    valid=(
        """\
# world: 2
pattern main(x: float32[n], y: float32[n], z: float32[2, n], n = 8):
    parallel:
        sequence:
            x @ 0 -> y @ 1
        sequence:
            z[0] @ 0 -> z[1] @ 1, tag=1
""",
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    parallel:
        all_reduce(x)
        all_reduce(y)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per pair of statements."""
    program, nests = facts.program, facts.program.nests
    if not len(nests.key):
        return
    rows = np.flatnonzero((program.kind <= Kind.BARRIER) & (program.nest >= 0))
    place, branch, construct = around(facts, rows)
    yield from _clashes(facts, rows[place], branch, construct)


def around(facts: Facts, rows: Array) -> tuple[Array, Array, Array]:
    """Every `parallel:` around each row: the row's place in `rows`, its branch, the construct.

    Rows at different depths may be in branches of one construct, so all depths go together.
    """
    found: list[tuple[Array, Array, Array]] = []
    for branch, construct in levels(facts, rows):
        here = np.flatnonzero(construct >= 0)
        found.append((here, branch[here], construct[here]))
    if len(found) == 1:
        return found[0]
    none = np.zeros(0, dtype=np.int64)
    place, branch, construct = zip((none, none, none), *found, strict=True)
    return np.concatenate(place), np.concatenate(branch), np.concatenate(construct)


def levels(facts: Facts, rows: Array) -> Iterator[tuple[Array, Array]]:
    """For each depth, per row its branch (a sequence, or itself) and the `parallel:` around."""
    program, nests = facts.program, facts.program.nests
    branch, construct = program.key[rows].copy(), program.nest[rows].copy()
    while (construct >= 0).any():
        _, parent, sequence = nests.look_up(construct)
        parallel = np.where(sequence, parent, construct)
        yield np.where(sequence, construct, branch), parallel
        branch, construct = parallel, nests.look_up(parallel)[1]


def _clashes(facts: Facts, rows: Array, branch: Array, construct: Array) -> Iterator[Diagnostic]:
    """Rows of one channel in different branches of one construct, one of them a sequence."""
    program, nests = facts.program, facts.program.nests
    if not len(rows):
        return
    message = program.kind[rows] <= Kind.RECV
    bound = int(program.key.max()) + 1
    channel = combine(
        [
            (program.rank[rows].astype(np.int64), program.world),
            (construct, bound),
            (program.group[rows].astype(np.int64), len(program.groups.entries)),
            (np.where(message, program.kind[rows] + 1, 0), 3),
            (np.where(message, program.peer[rows] + 1, 0), program.world + 1),
            (np.where(message, program.tag[rows], 0), int(program.tag.max()) + 1),
        ]
    )
    order = np.lexsort((branch, channel))
    rows, branch, channel = rows[order], branch[order], channel[order]
    _, _, unordered = nests.look_up(branch)
    clash = (channel[1:] == channel[:-1]) & (branch[1:] != branch[:-1])
    clash &= unordered[1:] | unordered[:-1]
    seen: set[tuple[int, int]] = set()
    for i in np.flatnonzero(clash).tolist():
        first, second = int(rows[i]), int(rows[i + 1])
        pair = (int(program.site[first]), int(program.site[second]))
        if pair not in seen:
            seen.add(pair)
            yield _report(facts, first, second)


def _report(facts: Facts, first: int, second: int) -> Diagnostic:
    name = "channel" if facts.program.kind[first] <= Kind.RECV else "group"
    message = f"two branches of one `parallel:` use one {name} on {facts.event(first)}"
    hint = "give the messages tags of their own, or the branches groups of their own"
    labels = (facts.label(first), facts.label(second, "in no order to the other"))
    return Diagnostic(RULE.code, message, labels, (), hint)
