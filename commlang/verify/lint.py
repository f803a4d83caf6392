"""All findings of a file: what it says, and what its patterns do in some worlds."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from commlang.checks import check_program
from commlang.checks.hygiene import check_hygiene
from commlang.checks.selection import DEFAULT, Selection
from commlang.diagnostics import Severity
from commlang.errors import PatternError
from commlang.expand.run import MAX_EVENTS
from commlang.program import build
from commlang.records import record
from commlang.resolve.check import check_all
from commlang.resolve.modules import load_module
from commlang.transports import PORTABLE, Target
from commlang.verify.cases import Case, Choice, Unchecked, cases, preset_cases
from commlang.verify.choose import choose_pattern
from commlang.verify.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from commlang.diagnostics import Diagnostic
    from commlang.resolve.modules import Definition, Module
    from commlang.source import Source

UNDECIDED = "CL241"
"""The code of a contract that could be neither proven nor refuted."""


@record
class Options:
    """For what patterns are checked, and which rules are asked for.

    With `strict` a contract that could be neither proven nor refuted is an error.
    """

    choice: Choice = field(default_factory=Choice)
    target: Target = PORTABLE
    selection: Selection = DEFAULT
    strict: bool = False
    max_events: int = MAX_EVENTS
    progress: Callable[[str, int, int], None] | None = None
    """Told the name of a pattern, and how many of its worlds of how many are done."""

    @property
    def open(self) -> bool:
        """Whether everything that a pattern is usually checked for is asked for."""
        return self.choice == Choice() and self.target.backend is None


USUAL = Options()


def lint_source(
    source: Source,
    pattern: str | None = None,
    options: Options = USUAL,
    *,
    outcome: Outcome | None = None,
) -> Outcome:
    """Check a source and all it imports, and its patterns (or the named one) in some worlds.

    Raises UsageError if it has no pattern of that name; all that is wrong in it is a finding.
    """
    told = outcome or Outcome()
    try:
        module = load_module(source)
    except PatternError as error:
        told.files += 1
        told.complete = False
        told.add(error.diagnostics)
        return told
    return lint_module(module, pattern, options, outcome=outcome)


def lint_module(
    module: Module,
    pattern: str | None = None,
    options: Options = USUAL,
    *,
    outcome: Outcome | None = None,
) -> Outcome:
    """As `lint_source`, for a module that is loaded.

    With an `outcome` of one's own, its `judge_ignores` says at the end what else is to be told.
    """
    if outcome is None:
        outcome = lint_module(module, pattern, options, outcome=Outcome())
        outcome.judge_ignores(options.selection)
        return outcome
    names = module.exported if pattern is None else (pattern,)
    chosen = [choose_pattern(module, name) for name in names]
    outcome.files += 1
    static = check_all(module)
    outcome.add(static)
    if static:  # what they say would only be said again, less well
        outcome.complete = False
        return outcome
    tidy = [*check_hygiene(module), *outcome.ignores.invalid(module.source)]
    outcome.add(found for found in tidy if options.selection.wants(found.code))
    seen = [_lint_pattern(item, options, pattern is not None, outcome) for item in chosen]
    if pattern is None and options.open and all(seen):
        outcome.whole.append(module.source)
    return outcome


def _lint_pattern(definition: Definition, options: Options, named: bool, outcome: Outcome) -> bool:
    """Check one pattern; whether it could be expanded."""
    outcome.look_at(definition)
    checked = False
    notes: list[str] = []
    try:
        if options.choice.worlds:
            checked = _sweep(definition, options, named, outcome, notes)
        for case in _cases(definition, options.choice, named=named):
            if isinstance(case, Case):
                checked = True
                outcome.add(_findings(definition, case, options))
            else:
                notes.append(case.reason)
    except PatternError as error:
        outcome.add(error.diagnostics)
    outcome.patterns += checked
    if notes and not checked:
        where = definition.module.source.where(definition.node.target.span)
        name = definition.node.name
        outcome.notes.append(f"{where}: `{name}` was checked only statically: {notes[0]}")
    return checked


def _cases(definition: Definition, choice: Choice, *, named: bool) -> Iterator[Case | Unchecked]:
    """The cases of single worlds: beside a sweep, the presets unless something was chosen."""
    if not choice.worlds:
        return cases(definition, choice, named=named)
    chosen = bool(choice.values) or choice.preset is not None
    return iter(()) if chosen else preset_cases(definition, named=named)


def _sweep(
    definition: Definition, options: Options, named: bool, outcome: Outcome, notes: list[str]
) -> bool:
    """Check a pattern in all worlds that were asked for; whether it could be in any."""
    from commlang.verify.sweep import sweep

    choice, told = options.choice, options.progress

    def case_in(world: int) -> Case | Unchecked:
        return next(cases(definition, replace(choice, world=world, worlds=()), named=named))

    def check(world: int, max_events: int) -> list[Diagnostic]:
        try:
            case = case_in(world)
        except PatternError as error:
            return list(error.diagnostics)
        assert isinstance(case, Case)
        return _findings(definition, case, replace(options, max_events=max_events))

    def progress(done: int, worlds: int) -> None:
        if told is not None:
            told(definition.node.name, done, worlds)

    first = case_in(choice.worlds[0])
    if not isinstance(first, Case):
        notes.append(first.reason)
        return False
    result, found = sweep(definition, choice.worlds, check, options.max_events, progress)
    outcome.add(found)
    outcome.sweeps.append(result)
    outcome.notes.append(result.describe())
    return bool(result.checked)


def _findings(definition: Definition, case: Case, options: Options) -> list[Diagnostic]:
    try:
        program = build(definition, case.world, case.values, max_events=options.max_events)
        found = check_program(program, options.target, options.selection)
    except PatternError as error:
        found = error.diagnostics
    if not found:
        return []
    if options.strict:
        found = [replace(d, severity=Severity.ERROR) if d.code == UNDECIDED else d for d in found]
    note = case.describe(definition)
    extra: dict[str, object] = {"world": case.world, "preset": case.preset}
    return [replace(d, notes=(*d.notes, note), extra={**d.extra, **extra}) for d in found]
