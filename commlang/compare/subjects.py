"""Which patterns are compared, under which names, and which values each is given."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from commlang.diagnostics import did_you_mean
from commlang.errors import CommlangError, UsageError
from commlang.expand.run import MAX_EVENTS, parameter_names
from commlang.program import build
from commlang.records import record
from commlang.verify import default_world, find_pattern, parse_settings, preset_values
from commlang.verify.choose import MAIN
from commlang.verify.values import presets

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from commlang.program import Program
    from commlang.resolve.modules import Definition

MOST = 16
"""Most patterns that are compared at once; more do not fit beside one another."""


@record
class Subject:
    """One pattern: its name in the table, what was typed for it, or what is wrong with that."""

    label: str
    file: str
    definition: Definition | None
    error: CommlangError | None = None


def subjects(files: Sequence[str]) -> list[Subject]:
    """A subject for each FILE, FILE:PATTERN, library name, or LABEL=one of these.

    Without a label it is the pattern's name, for `main` the file's; of two alike, the later ones
    get a number. Raises UsageError for too many files, and for a label or `-` given twice.
    """
    if len(files) > MOST:
        raise UsageError(f"{len(files)} patterns do not fit beside one another; give up to {MOST}")
    if sum(file == "-" for _, file in map(_split, files)) > 1:
        raise UsageError("standard input can be read once; put the other pattern into a file")
    found: list[Subject] = []
    given = [label for label, _ in map(_split, files) if label]
    for label in given:
        if given.count(label) > 1:
            raise UsageError(f"the label `{label}` is given twice")
    taken = set(given)
    for label, file in map(_split, files):
        definition, error = None, None
        try:
            definition = find_pattern(file)
        except CommlangError as failure:
            error = failure
        name = label or _free(_own_name(definition) if definition else file, taken)
        taken.add(name)
        found.append(Subject(name, file, definition, error))
    return found


def _own_name(definition: Definition) -> str:
    """The pattern's name; `main` says less than its file's."""
    name, path = definition.node.name, definition.module.source.path
    return PurePath(path).stem if name == MAIN and path.endswith(".cl") else name


def _split(text: str) -> tuple[str, str]:
    label, equals, file = text.partition("=")
    return (label, file) if equals and label.isidentifier() and file else ("", text)


def _free(name: str, taken: set[str]) -> str:
    number = 1
    while name in taken:
        number += 1
        name = f"{name.rpartition('_')[0] if number > 2 else name}_{number}"
    return name


@record
class Choice:
    """What was asked for: values for all patterns, and by label for one; a preset and a world."""

    common: dict[str, Any]
    own: dict[str, dict[str, Any]]
    preset: str | None
    world: int | None

    def program(self, subject: Subject, max_events: int = MAX_EVENTS) -> Program:
        """The subject, expanded; raises CommlangError with what is wrong with it."""
        if subject.definition is None:
            assert subject.error is not None
            raise subject.error
        definition, world = subject.definition, self.world
        parameters = parameter_names(definition.node)
        values = {name: value for name, value in self.common.items() if name in parameters}
        values |= self.own.get(subject.label, {})
        if self.preset is not None and self.preset in presets(definition):
            world, found = preset_values(definition, self.preset, world)
            values = found | values
        if world is None:
            world = default_world(definition, values)
        return build(definition, world, values, max_events=max_events)


def chosen(
    found: Sequence[Subject], settings: Iterable[str], preset: str | None, world: int | None
) -> Choice:
    """The values for some patterns.

    `NAME=VALUE` is for every pattern with that parameter, `LABEL.NAME=VALUE` for one of them and
    goes before it; `preset` for every pattern that has it. Raises UsageError for a parameter, a
    label or a preset that none has.
    """
    common, own = _settings(settings)
    known = {s.label: s.definition for s in found if s.definition is not None}
    labels = [s.label for s in found]
    for label in own:
        if label not in labels:
            hint = did_you_mean(label, labels) or f"there are {', '.join(labels)}"
            raise UsageError(f"--set {label}.…: no pattern here is called that; {hint}")
    _check_own(known, own)
    if len(known) == len(found):  # of patterns that cannot be read nothing is known
        _check_common(known, common, preset)
    return Choice(common, own, preset, world)


def _settings(texts: Iterable[str]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    common: list[str] = []
    own: dict[str, list[str]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        label, dot, parameter = name.strip().rpartition(".")
        if dot and equals:
            own.setdefault(label, []).append(f"{parameter}={value}")
        else:
            common.append(text)
    return parse_settings(common), {label: parse_settings(given) for label, given in own.items()}


def _check_own(known: dict[str, Definition], own: dict[str, dict[str, Any]]) -> None:
    for label in own.keys() & known.keys():
        names = parameter_names(known[label].node)
        for name in own[label]:
            if name not in names:
                hint = did_you_mean(name, names) or f"it has {', '.join(names) or 'none'}"
                raise UsageError(f"--set {label}.{name}: it has no such parameter; {hint}")


def _check_common(known: dict[str, Definition], common: dict[str, Any], preset: str | None) -> None:
    names = dict.fromkeys(n for d in known.values() for n in parameter_names(d.node))
    for name in common:
        if name not in names:
            hint = did_you_mean(name, list(names)) or f"there are {', '.join(names) or 'none'}"
            raise UsageError(f"--set {name}: no pattern here has that parameter; {hint}")
    some = dict.fromkeys(name for d in known.values() for name in presets(d))
    if preset is not None and preset not in some:
        hint = did_you_mean(preset, list(some)) or f"there are {', '.join(some) or 'none'}"
        raise UsageError(f"--preset {preset}: no pattern here has it; {hint}")
