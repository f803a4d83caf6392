"""What keeps a program from being run: what is wrong, and on NCCL also what may hang."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from commlang.diagnostics import Severity
from commlang.errors import PatternError
from commlang.transports import Backend
from commlang.verify.ignores import Ignores

if TYPE_CHECKING:
    from commlang.diagnostics import Diagnostic
    from commlang.transports import Target

HAZARDS = "CL25"
"""The codes of what may hang on a transport, as opposed to what certainly does."""


def refuse(
    found: list[Diagnostic], target: Target, *, allow_hazards: bool, hint: str
) -> list[Diagnostic]:
    """Raise PatternError if these findings forbid a run on the target; else the warnings that stay.

    A comment silences a warning here as it does in lint, but what is wrong stays wrong. `hint`
    says how hazards are allowed.
    """
    errors = [d for d in found if d.severity is Severity.ERROR]
    if errors:
        raise PatternError(errors)
    ignores = Ignores()
    warnings = [d for d in found if d.severity is Severity.WARNING and not ignores.silence(d)]
    hazards = [d for d in warnings if d.code.startswith(HAZARDS)]
    if hazards and target.backend is Backend.NCCL and not allow_hazards:
        raise PatternError([replace(d, notes=(*d.notes, hint)) for d in hazards])
    return warnings


def is_sure(found: list[Diagnostic]) -> bool:
    """Whether there is no hazard, be it one that a comment or an option allows."""
    return not any(d.code.startswith(HAZARDS) for d in found if d.severity is Severity.WARNING)
