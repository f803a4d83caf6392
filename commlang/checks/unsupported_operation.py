"""An operation that the backend does not have (CL260).

Backends of torch have come to their operations one by one, and some are missing from older
releases: every rank gets an error from the call, and nothing has moved. commlang goes by what its
executor really calls: lists of different lengths, which only NCCL takes, go as one tensor.

Write what the operation does with others, as an `all_reduce` of which each rank keeps its part does
the work of a `reduce_scatter`; or take another backend or release.

- [torch.distributed, backends](https://docs.pytorch.org/docs/2.13/distributed.html#backends)
- [pytorch PR 149869](https://github.com/pytorch/pytorch/pull/149869): reduce_scatter on gloo
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.refusals import refused
from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Severity
from commlang.transports.support import Aspect, since

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts

RULE = Rule(
    "CL260",
    "unsupported-operation",
    Severity.ERROR,
    invalid=(
        """\
# backend: gloo
# torch: 2.7
pattern main(y: float32[n], x: float32[world * n], n = 8):
    reduce_scatter(y, x.chunks(world))  # CL260
""",
    ),
    valid=(
        """\
# backend: gloo
# torch: 2.8
pattern main(y: float32[n], x: float32[world * n], n = 8):
    reduce_scatter(y, x.chunks(world))
""",
        """\
# backend: gloo
# torch: 2.7
pattern main(y: float32[n], x: float32[world * n], n = 8):
    all_reduce(x)
    x.chunks(world)[rank] -> y
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per statement."""
    for found in refused(facts, Aspect.OPERATION):
        message = f"{found.lacks} {found.operation} in torch {facts.target.torch}"
        release = since(found.backends[0], found.operation)
        hint = f"it has since torch {release}" if release else None
        yield Diagnostic(RULE.code, message, (facts.label(found.row),), (found.why,), hint)
