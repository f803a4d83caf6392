"""`auto:TABLE` in the place of a pattern: which one a table chooses for a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commlang.cli.guard import say
from commlang.diagnostics import Diagnostic, Severity
from commlang.errors import PatternError

if TYPE_CHECKING:
    from commlang.automatic import Auto
    from commlang.program import Program
    from commlang.resolve.modules import Definition
    from commlang.transports import Target

PREFIX = "auto:"


def auto_of(file: str) -> Auto | None:
    """The pattern that `auto:TABLE` means; None for another name."""
    if not file.startswith(PREFIX):
        return None
    from commlang.automatic import auto

    return auto(file.removeprefix(PREFIX))


def chosen(
    auto: Auto, own: Program, target: Target, given: dict[str, Any], *, quiet: bool
) -> Program:
    """The program of the fastest pattern that may run there, else `own`, the backend's own."""
    mismatch = auto.mismatch(str(target.backend) if target.backend else None)
    if mismatch:
        if not quiet:
            say(f"warning: {mismatch}")
        return own
    definitions, choice = auto.choose(own)
    tell = given["verbose"] and not quiet
    if tell:
        say(f"auto: {choice.why}")
    for definition in definitions:
        program, faults = _tried(definition, own, target, given["max_events"])
        if program is not None and not faults:
            return program
        if tell:
            say(f"auto: `{definition.node.name}` will not do: {faults[0].message}")
    return own


def _tried(
    definition: Definition, own: Program, target: Target, max_events: int
) -> tuple[Program | None, list[Diagnostic]]:
    from commlang.checks import check_program
    from commlang.program import build

    try:
        program = build(definition, own.world, own.values, max_events=max_events)
        found = check_program(program, target)
    except PatternError as error:
        return None, list(error.diagnostics)
    return program, [d for d in found if d.severity is not Severity.ADVICE]
