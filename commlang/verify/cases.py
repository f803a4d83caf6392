"""The worlds and parameters for which a pattern is checked."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from commlang.errors import PatternError
from commlang.expand.run import parameter_names
from commlang.records import record
from commlang.syntax import ast
from commlang.verify.values import format_value, preset_values, presets, unset
from commlang.verify.worlds import CANDIDATES, REQUIRED, default_world

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commlang.resolve.modules import Definition


@record
class Choice:
    """What a user asks for: a number of ranks, parameters, a preset. All may be left open.

    Of several `worlds`, each is a case of its own (`sweep`).
    """

    world: int | None = None
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    preset: str | None = None
    worlds: tuple[int, ...] = ()


@record
class Case:
    """One world with the parameters that have no default there."""

    world: int
    values: Mapping[str, Any]
    preset: str | None = None

    def describe(self, definition: Definition) -> str:
        """`with world = 4, n = 1Mi`: what was given, and defaults that are plain numbers."""
        shown = {"world": str(self.world)}
        for param in definition.node.params:
            if isinstance(param.default, ast.Number):
                shown[param.target.id] = param.default.text
        shown |= {name: _short(format_value(value)) for name, value in self.values.items()}
        text = ", ".join(f"{name} = {value}" for name, value in shown.items())
        return f"with {text}" + (f" (preset `{self.preset}`)" if self.preset else "")


@record
class Unchecked:
    """Why a pattern could not be expanded for some case: it says too little by itself."""

    reason: str


def cases(
    definition: Definition, choice: Choice, *, named: bool = False
) -> Iterator[Case | Unchecked]:
    """The case that the user asked for; else the default one, and one for each preset.

    Values and a preset that the pattern does not have are left out: they are meant for others.
    Of a `named` pattern nothing is left unchecked. Raises PatternError for a preset whose values
    are no constants, and for a pattern that no small world will do for, unless a `require` of one
    that is not named says so: it may know a larger one.
    """
    known = parameter_names(definition.node)
    values = {name: value for name, value in choice.values.items() if name in known}
    chosen = choice.preset if choice.preset in presets(definition) else None
    if chosen is None:
        yield _case(definition, choice.world, values, None, named)
    if chosen:
        yield _preset(definition, chosen, choice.world, values, named)
    elif not (values or choice.world):
        yield from preset_cases(definition, named=named)


def preset_cases(definition: Definition, *, named: bool = False) -> Iterator[Case | Unchecked]:
    """A case for each preset; raises PatternError as `cases` does."""
    for name in presets(definition):
        yield _preset(definition, name, None, {}, named)


def _preset(
    definition: Definition, name: str, world: int | None, values: dict[str, Any], named: bool
) -> Case | Unchecked:
    world, given = preset_values(definition, name, world)
    return _case(definition, world, {**given, **values}, name, named)


def _case(
    definition: Definition,
    world: int | None,
    values: dict[str, Any],
    preset: str | None,
    named: bool,
) -> Case | Unchecked:
    missing = unset(definition, values)
    if missing and not named:
        names = ", ".join(f"`{name}`" for name in missing)
        have = "has no value" if len(missing) == 1 else "have no values"
        return Unchecked(f"{names} {have}; give {' '.join(f'--set {n}=…' for n in missing)}")
    if world is None:
        try:
            world = default_world(definition, values)
        except PatternError as error:
            told = error.diagnostics[0]
            if named or told.code != REQUIRED:
                raise
            most = max(CANDIDATES)
            return Unchecked(
                f"no world of 1 to {most} ranks will do ({told.message}); give --world N"
            )
    return Case(world, values, preset)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"
