"""Rules as data: an id, a severity, a source, and a function that says whether it applies."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from commlang.doctor.probe import Probe


class Severity(StrEnum):
    """`BROKEN` will fail, `WARNING` is slow or may fail, `ADVICE` could be better."""

    BROKEN = "broken"
    WARNING = "warning"
    ADVICE = "advice"


@record
class Said:
    """What a rule found: the fact, why it matters, and what to do."""

    fact: str
    why: str
    todo: str


Check: TypeAlias = "Callable[[Probe], Said | None]"


@record
class Rule:
    """A rule; `source` is the page that it rests on."""

    code: str
    severity: Severity
    source: str
    check: Check


@record
class Advice:
    """What to tell of a machine, or of machines in general."""

    code: str
    severity: Severity
    fact: str
    why: str
    todo: str
    source: str


def rules() -> Iterator[Rule]:
    """All rules, in the order of their codes."""
    from commlang.doctor import backends, limits, network, variables

    for module in (backends, limits, network, variables):
        yield from module.RULES


def advise(probe: Probe) -> list[Advice]:
    """What the rules say of a machine, the worst first."""
    found: list[Advice] = []
    for rule in rules():
        said = rule.check(probe)
        if said:
            words = (said.fact, said.why, said.todo)
            found.append(Advice(rule.code, rule.severity, *words, rule.source))
    order = list(Severity)
    return sorted(found, key=lambda advice: order.index(advice.severity))
