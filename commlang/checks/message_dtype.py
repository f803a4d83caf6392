"""A message of one dtype into a buffer of another (CL205).

No backend compares the dtypes of the two ends. The bytes arrive as they are and are read as if
they were of the receiver's dtype: garbage, without an error.

Cast into a `temp` of the dtype that the other end has, and send or receive that.

- [torch.distributed, point-to-point communication](https://docs.pytorch.org/docs/2.13/distributed.html)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.checks.messages import per_pair
from commlang.checks.rule import Rule
from commlang.checks.unmatched import more
from commlang.diagnostics import Diagnostic, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts

RULE = Rule(
    "CL205",
    "message-dtype",
    Severity.ERROR,
    invalid=(
        """\
# world: 2
pattern main(x: float32[n], h: float16[n], n = 8):
    if rank == 0:
        send(h, dst=1)
    else:
        recv(x, src=0)  # CL205
""",
    ),
    valid=(
        """\
# world: 2
pattern main(x: float32[n], n = 8):
    temp h: float16[n]
    if rank == 0:
        x -> h
        send(h, dst=1)
    else:
        recv(h, src=0)
        h -> x
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per pair of statements."""
    program, send, recv = facts.program, facts.messages.send, facts.messages.recv
    if not len(send):
        return
    names = {str(d): n for n, d in enumerate(program.site_dtype)}
    dtype = np.array([names[str(d)] for d in program.site_dtype])
    differs = dtype[program.site[send]] != dtype[program.site[recv]]
    for pair in per_pair(facts, differs):
        yield _report(facts, *pair)


def _report(facts: Facts, send: int, recv: int, many: int) -> Diagnostic:
    sites = facts.program.site_of(send), facts.program.site_of(recv)
    message = (
        f"message of {sites[0].dtype} from {facts.event(send)} into {sites[1].dtype} "
        f"on {facts.event(recv)}"
    )
    labels = (facts.label(recv, str(sites[1].dtype)), facts.label(send, str(sites[0].dtype)))
    notes = ("no backend compares dtypes: the bytes are reinterpreted", *more(many, "messages"))
    hint = "cast into a temp of the other dtype first: `x -> cast`"
    return Diagnostic(RULE.code, message, labels, notes, hint)
