"""A batch of more than 256 messages on NCCL (CL253).

The messages of a `parallel:` become one batch. NCCL cuts a large batch into several launches by a
budget that depends on what a rank has in it, so that two ranks may cut theirs at different places:
the two halves of a message then stand in launches that wait for one another. Hangs were reported
from about 256 messages on.

Cut the block into rounds in which each rank exchanges with few peers, and both sides of a pair in
the same round: the library's `pairwise_all_to_all` does so. A rotation in which each rank starts
with another peer is no cure, it is a deadlock of its own.

- [pytorch issue 174288](https://github.com/pytorch/pytorch/issues/174288), and
  [pytorch pull 174942](https://github.com/pytorch/pytorch/pull/174942), which cuts them in torch
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Severity
from commlang.program.sorting import stable_order
from commlang.transports import Backend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts

MOST = 256

RULE = Rule(
    "CL253",
    "nccl-batch-size",
    Severity.WARNING,
    invalid=(
        """\
# world: 2
# backend: nccl
pattern main(x: float32[n], y: float32[n], n = 512):
    parallel for i in range(150):
        send(x[i], dst=1 - rank)  # CL253
        recv(y[i], src=1 - rank)
""",
    ),
    valid=(
        """\
# world: 2
# backend: nccl
pattern main(x: float32[n], y: float32[n], n = 512):
    for part in range(2):
        parallel for i in range(part * 75, part * 75 + 75):
            send(x[i], dst=1 - rank)
            recv(y[i], src=1 - rank)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per statement that such batches begin with."""
    if facts.target.backend is not Backend.NCCL:
        return
    issue = facts.nccl_models[0].issue
    operation = issue.operation[issue.batched[issue.row]]
    row = issue.row[issue.batched[issue.row]]
    if not len(row):
        return
    fresh = np.ones(len(row), dtype=np.bool_)
    fresh[1:] = operation[1:] != operation[:-1]
    first = np.flatnonzero(fresh)
    size = np.diff(np.append(first, len(row)))
    large = np.flatnonzero(size > MOST)
    site = facts.program.site[row[first[large]]]
    seen: set[int] = set()
    for i in stable_order(site).tolist():
        if int(site[i]) not in seen:
            seen.add(int(site[i]))
            yield _report(facts, int(row[first[large[i]]]), int(size[large[i]]))


def _report(facts: Facts, row: int, size: int) -> Diagnostic:
    message = f"may hang on NCCL: a batch of {size:,} messages on {facts.event(row)}"
    why = (
        f"above about {MOST} messages NCCL cuts a batch into several launches, and two ranks may "
        "cut theirs at different places"
    )
    hint = (
        "cut the block into rounds in which both sides of each pair take part, as the library's "
        "`pairwise_all_to_all` does"
    )
    label = facts.label(row, f"the first of {size:,}")
    notes = (why, *facts.origin(row))
    return Diagnostic(RULE.code, message, (label,), notes, hint, severity=RULE.severity)
