"""What the checker says of a pattern for gloo."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

from commlang.checks import check_program
from commlang.checks.verdict import decide
from commlang.diagnostics import Severity
from commlang.program import build
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.transports import Backend, Target

if TYPE_CHECKING:
    from commlang.program import Program

GLOO = Target(Backend.GLOO)
_HANGS = {"CL201", "CL202", "CL203", "CL211", "CL212", "CL213"}
_DEPENDS = {"CL220", "CL221"}


class Claim(StrEnum):
    """What a run will do."""

    ENDS = "ends"
    HANGS = "hangs"
    DEPENDS = "depends"
    UNSOUND = "unsound"
    """Something else is wrong, of which a run shows nothing certain: sizes, dtypes, ops."""


class Contract(StrEnum):
    """What is said of the pattern's contracts."""

    PROVEN = "proven"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    NONE = "none"
    """There are none, or the checker does not look at them."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """All claims on one program; `codes` are all that was found, `errors` those that refuse it."""

    claim: Claim
    race_free: bool
    contract: Contract
    codes: tuple[str, ...]
    errors: tuple[str, ...]

    @property
    def refusals(self) -> set[str]:
        """The codes that say it may hang."""
        return set(self.codes) & (_HANGS | _DEPENDS)


@cache
def proves_contracts() -> bool:
    """Whether this checker decides contracts: it sees that this one is wrong."""
    text = "pattern main(x: float32[4]):\n    ensure x == old(x) + 1\n    pass\n"
    definition = load_module(Source(text, "wrong.cl")).symbols["main"]
    return any(d.code == "CL240" for d in check_program(build(definition, 2), GLOO))


def judge(program: Program, *, contracts: bool = False) -> Verdict:
    """The verdict on a program; `contracts` tells that it has some."""
    found = check_program(program, GLOO)
    errors = {d.code for d in found if d.severity is Severity.ERROR}
    every = {d.code for d in found}
    said = Contract.NONE
    if contracts and proves_contracts():
        said = Contract.PROVEN
        if "CL240" in every:
            said = Contract.REFUTED
        elif every & {"CL241", "CL242"}:
            said = Contract.UNDECIDED
    data = {code for code in every if code.startswith("CL23")}
    other = errors - data - _HANGS - _DEPENDS - {"CL240", "CL241", "CL242"}
    claim = Claim.UNSOUND if other else Claim(decide(program, GLOO).name.lower())
    return Verdict(claim, not data, said, tuple(sorted(every)), tuple(sorted(errors)))
