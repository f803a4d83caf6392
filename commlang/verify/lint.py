"""All findings of a file: what it says, and what its patterns do in some worlds."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from commlang.checks import check_program
from commlang.diagnostics import Severity, did_you_mean
from commlang.errors import PatternError
from commlang.expand.run import MAX_EVENTS, parameter_names
from commlang.program import build
from commlang.resolve.check import check_all
from commlang.resolve.modules import load_module
from commlang.verify.cases import Case, Choice, cases
from commlang.verify.choose import choose_pattern
from commlang.verify.values import presets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlang.diagnostics import Diagnostic
    from commlang.resolve.modules import Definition, Module
    from commlang.source import Source

Key = tuple[str, str, int]


@dataclass(slots=True)
class Outcome:
    """The findings of some files, each told once, and what could not be looked at."""

    findings: list[Diagnostic] = field(default_factory=list["Diagnostic"])
    notes: list[str] = field(default_factory=list[str])
    files: int = 0
    patterns: int = 0
    """How many patterns were expanded and checked, in at least one world."""
    complete: bool = True
    """Whether every pattern was looked at; those of a file with static findings are not."""
    _seen: set[Key] = field(default_factory=set[Key])
    _parameters: dict[str, None] = field(default_factory=dict[str, None])
    _presets: dict[str, None] = field(default_factory=dict[str, None])

    def add(self, findings: Iterable[Diagnostic]) -> None:
        """Add findings, but for those of a code and place that are already there."""
        for found in findings:
            key = _key(found)
            if key not in self._seen:
                self._seen.add(key)
                self.findings.append(found)

    def look_at(self, definition: Definition) -> None:
        """Note what can be set of a pattern."""
        self._parameters |= dict.fromkeys(parameter_names(definition.node))
        self._presets |= dict.fromkeys(presets(definition))

    def unused(self, choice: Choice) -> str | None:
        """What was asked for that no pattern has, as a message."""
        if not self.complete:
            return None
        for name in choice.values:
            if name not in self._parameters:
                hint = _hint(name, self._parameters)
                return f"--set {name}: no pattern here has that parameter; {hint}"
        if choice.preset is not None and choice.preset not in self._presets:
            hint = _hint(choice.preset, self._presets)
            return f"--preset {choice.preset}: no pattern here has it; {hint}"
        return None

    def count(self, severity: Severity) -> int:
        """The number of findings of a severity."""
        return sum(found.severity is severity for found in self.findings)


def lint_source(
    source: Source,
    pattern: str | None = None,
    choice: Choice | None = None,
    *,
    max_events: int = MAX_EVENTS,
    outcome: Outcome | None = None,
) -> Outcome:
    """Check a source and all it imports, and its patterns (or the named one) in some worlds.

    Raises UsageError if it has no pattern of that name; all that is wrong in it is a finding.
    """
    outcome = outcome or Outcome()
    try:
        module = load_module(source)
    except PatternError as error:
        outcome.files += 1
        outcome.complete = False
        outcome.add(error.diagnostics)
        return outcome
    return lint_module(module, pattern, choice, max_events=max_events, outcome=outcome)


def lint_module(
    module: Module,
    pattern: str | None = None,
    choice: Choice | None = None,
    *,
    max_events: int = MAX_EVENTS,
    outcome: Outcome | None = None,
) -> Outcome:
    """As `lint_source`, for a module that is loaded."""
    outcome = outcome or Outcome()
    names = module.exported if pattern is None else (pattern,)
    chosen = [choose_pattern(module, name) for name in names]
    outcome.files += 1
    static = check_all(module)
    outcome.add(static)
    if static:  # what they say would only be said again, less well
        outcome.complete = False
        return outcome
    for definition in chosen:
        _lint_pattern(definition, choice or Choice(), pattern is not None, max_events, outcome)
    return outcome


def _lint_pattern(
    definition: Definition, choice: Choice, named: bool, max_events: int, outcome: Outcome
) -> None:
    outcome.look_at(definition)
    checked = False
    notes: list[str] = []
    try:
        for case in cases(definition, choice, named=named):
            if isinstance(case, Case):
                checked = True
                outcome.add(_findings(definition, case, max_events))
            else:
                notes.append(case.reason)
    except PatternError as error:
        outcome.add(error.diagnostics)
    outcome.patterns += checked
    if notes and not checked:
        where = definition.module.source.where(definition.node.target.span)
        name = definition.node.name
        outcome.notes.append(f"{where}: `{name}` was checked only statically: {notes[0]}")


def _findings(definition: Definition, case: Case, max_events: int) -> list[Diagnostic]:
    try:
        program = build(definition, case.world, case.values, max_events=max_events)
        found = check_program(program)
    except PatternError as error:
        found = error.diagnostics
    if not found:
        return []
    note = case.describe(definition)
    extra: dict[str, object] = {"world": case.world, "preset": case.preset}
    return [replace(d, notes=(*d.notes, note), extra={**d.extra, **extra}) for d in found]


def _hint(name: str, known: Iterable[str]) -> str:
    names = list(known)
    listed = ", ".join([*names[:8], "…"] if len(names) > 8 else names)
    return did_you_mean(name, names) or (f"there are {listed}" if names else "there are none")


def _key(found: Diagnostic) -> Key:
    if not found.labels:
        return found.code, found.message, -1
    label = found.labels[0]
    # One file may be met under several paths, as itself and as an import of others.
    return found.code, os.path.abspath(label.source.path), label.span.start  # noqa: PTH100
