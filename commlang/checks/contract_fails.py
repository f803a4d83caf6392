"""A contract that does not hold (CL240).

An `ensure` is decided before the run, for every rank and every element: the pattern is carried out
on symbols instead of numbers, and what a tensor holds at the end is compared with what the
contract says. What is lost, counted twice, stale, misplaced or never written shows. The finding
names the rank and the elements, the contributions that are missing or too many, and the statement
that wrote there last. Sums and products are taken as exact, up to rounding; an extern, or a
`compute` that says what it reads, is some function of that.

Either the pattern or the contract is wrong. Look first at the statement that wrote last, and
whether it runs on that rank in that iteration.

- [How a proof works](https://en.wikipedia.org/wiki/Schwartz%E2%80%93Zippel_lemma): two polynomials
  that differ agree at random points only by bad luck; `docs/contracts.md` states the bound
- [What collectives leave in their tensors](https://docs.pytorch.org/docs/2.13/distributed.html)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.diagnostics import Diagnostic

RULE = Rule(
    "CL240",
    "contract-fails",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    ensure x == avg(old(x) @ r for r in ranks)  # CL240
    all_reduce(x, op=sum)
""",
        """\
pattern main(x: float32[n], inbox: float32[n], n = 8):
    ensure x == sum(old(x) @ r for r in ranks)  # CL240
    x -> inbox
    for s in range(world - 2):  # one step too few
        temp got: like x
        parallel:
            send(inbox, dst=ranks.next)
            recv(got, src=ranks.prev)
        got -> x, op=sum
        got -> inbox
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    ensure x == avg(old(x) @ r for r in ranks)
    all_reduce(x, op=sum)
    scale(x, 1 / world)
""",
        """\
extern attend(q: read float32[n], kv: read float32[n], acc: update float32[n])

pattern main(q: float32[n], kv: float32[n], acc: float32[n], n = 8):
    ensure kv == old(kv) and q == old(q)
    attend(q, kv, acc)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per contract."""
    yield from (found for found in facts.contracts if found.code == RULE.code)
