"""commlang in Python programs: load a pattern, check it, plan it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from commlang.checks import check_program
from commlang.errors import PatternError
from commlang.expand.run import MAX_EVENTS
from commlang.program import Program, build
from commlang.resolve.check import check_all
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.verify import choose_pattern, default_world, locate_source, preset_values

if TYPE_CHECKING:
    from commlang.diagnostics import Diagnostic
    from commlang.plan import Plan
    from commlang.resolve.modules import Definition

Tensors = dict[str, tuple[str, tuple[int, ...]]]


class Pattern:
    """One pattern of a file, with everything that it imports."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition

    @property
    def name(self) -> str:
        """The pattern's name."""
        return self.definition.node.name

    @property
    def doc(self) -> str:
        """The pattern's docstring, or an empty string."""
        return self.definition.node.doc.value if self.definition.node.doc else ""

    def check(
        self, world: int | None = None, *, preset: str | None = None, **values: Any
    ) -> list[Diagnostic]:
        """All findings for a world and parameters; empty if the pattern is sound there."""
        found = check_all(self.definition.module)
        if found:
            return found
        try:
            return check_program(self.program(world, preset=preset, **values))
        except PatternError as error:
            return list(error.diagnostics)

    def program(
        self, world: int | None = None, *, preset: str | None = None, **values: Any
    ) -> Program:
        """The expanded program, not checked; raises PatternError for faults on the way."""
        world, values = self._choose(world, preset, values)
        return build(self.definition, world, values)

    def plan(
        self,
        world: int | None = None,
        *,
        preset: str | None = None,
        tensors: Tensors | None = None,
        max_events: int = MAX_EVENTS,
        **values: Any,
    ) -> Plan:
        """Check the pattern and plan it; raises PatternError with its diagnostics.

        Without `world`, the preset's, the mesh's or the smallest usual one that the pattern
        accepts is taken. `tensors` gives dtype names and shapes of tensors that the caller brings;
        parameters that stand in shapes are bound by them.
        """
        from commlang.plan import make_plan

        world, values = self._choose(world, preset, values)
        return make_plan(self.definition, world, values, shapes=tensors, max_events=max_events)

    def _choose(
        self, world: int | None, preset: str | None, values: dict[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        if preset is not None:
            preset_world, preset_set = preset_values(self.definition, preset)
            world = world if world is not None else preset_world
            values = {**preset_set, **values}
        return world if world is not None else default_world(self.definition, values), values


def load(path: str | Path, pattern: str | None = None) -> Pattern:
    """Load a pattern file, or a pattern of the shipped library by name.

    Raises UsageError if the file cannot be read or leaves open which pattern is meant, and
    PatternError if it does not parse or an import fails.
    """
    source = locate_source(str(path))
    return Pattern(choose_pattern(load_module(source), pattern))


def loads(text: str, pattern: str | None = None) -> Pattern:
    """Load a pattern from text; imports are relative to the working directory."""
    return Pattern(choose_pattern(load_module(Source(text)), pattern))
