"""What is decided of a program before it runs, for every transport that has a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks import check_program
from commlang.checks.verdict import decide
from commlang.diagnostics import Severity
from commlang.errors import PatternError
from commlang.records import record
from commlang.syntax import ast
from commlang.transports import RENDEZVOUS, Backend, NcclInit, Target

if TYPE_CHECKING:
    from commlang.program import Program

UNDECIDED = "CL241"
TARGETS = {
    "rendezvous": RENDEZVOUS,
    "nccl, lazy": Target(Backend.NCCL, NcclInit.LAZY),
    "nccl, eager": Target(Backend.NCCL, NcclInit.EAGER),
}
"""The models that say whether a program ends: messages that nothing buffers, and NCCL's."""


@record
class Proofs:
    """Whether a program `ends`, `hangs` or `depends on the implementation`, by name of the model.

    `contract` is `proven`, `undecided` where at least one `ensure` is, or `none` if there is none.
    """

    ends: dict[str, str]
    contract: str


def prove(program: Program) -> Proofs:
    """Decide a program; raises PatternError with the errors that are found in it."""
    found = check_program(program, RENDEZVOUS)
    errors = [d for d in found if d.severity is Severity.ERROR]
    if errors:
        raise PatternError(errors)
    ends = {name: str(decide(program, target)) for name, target in TARGETS.items()}
    if not any(isinstance(s, ast.Ensure) for s in program.definition.node.body):
        return Proofs(ends, "none")
    unsure = any(d.code == UNDECIDED for d in found)
    return Proofs(ends, "undecided" if unsure else "proven")
