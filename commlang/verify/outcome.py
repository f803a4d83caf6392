"""What checking files came to: findings, each told once, and what could not be looked at."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commlang.diagnostics import Severity, did_you_mean
from commlang.expand.run import parameter_names
from commlang.verify.ignores import Ignores
from commlang.verify.values import presets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlang.checks.selection import Selection
    from commlang.diagnostics import Diagnostic
    from commlang.resolve.modules import Definition
    from commlang.source import Source
    from commlang.verify.cases import Choice
    from commlang.verify.sweep import Sweep

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
    ignored: int = 0
    """How many findings a comment silences."""
    whole: list[Source] = field(default_factory=list["Source"])
    """Files of which every pattern was checked as it usually is."""
    ignores: Ignores = field(default_factory=Ignores)
    sweeps: list[Sweep] = field(default_factory=list["Sweep"])
    """What was decided of patterns that were checked in many worlds."""
    _seen: set[Key] = field(default_factory=set[Key])
    _parameters: dict[str, None] = field(default_factory=dict[str, None])
    _presets: dict[str, None] = field(default_factory=dict[str, None])

    def add(self, findings: Iterable[Diagnostic]) -> None:
        """Add findings, but for those that are already there or that a comment silences."""
        for found in findings:
            key = identity(found)
            if key not in self._seen:
                self._seen.add(key)
                if self.ignores.silence(found):
                    self.ignored += 1
                else:
                    self.findings.append(found)

    def judge_ignores(self, selection: Selection) -> None:
        """Add what is unused among the comments of the files that were checked as a whole.

        Where there are errors not every rule has had its say, so nothing is called unused.
        """
        failed = {f.labels[0].source.path for f in self.findings if f.labels and _is_error(f)}
        for source in self.whole:
            if source.path not in failed:
                unused = self.ignores.unused(source, selection)
                self.add(found for found in unused if selection.wants(found.code))

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

    @property
    def failed(self) -> bool:
        """Whether something is wrong, or probably so: advice is neither."""
        return any(found.severity is not Severity.ADVICE for found in self.findings)

    def count(self, severity: Severity) -> int:
        """The number of findings of a severity."""
        return sum(found.severity is severity for found in self.findings)


def _hint(name: str, known: Iterable[str]) -> str:
    names = list(known)
    listed = ", ".join([*names[:8], "…"] if len(names) > 8 else names)
    return did_you_mean(name, names) or (f"there are {listed}" if names else "there are none")


def _is_error(found: Diagnostic) -> bool:
    return found.severity is Severity.ERROR


def identity(found: Diagnostic) -> Key:
    """What makes a finding another one: its code and its place, or without one its message."""
    if not found.labels:
        return found.code, found.message, -1
    label = found.labels[0]
    # One file may be met under several paths, as itself and as an import of others.
    return found.code, os.path.abspath(label.source.path), label.span.start  # noqa: PTH100
