"""What is drawn: a program, and whatever else is known of it."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from commlang.records import entity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.checks.deadlock import Wait
    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.program.timing import Timing
    from commlang.topology import Machine


LONGEST = 40
"""Characters of a parameter's value in a title."""


@entity
class Subject:
    """A program to draw.

    `timings` are times to draw by, the planned ones before the measured; without any, events stand
    in program order. `ranks` are those to show, None for a choice of few. `ring` is the deadlock.
    `machine` (a `commlang.topology.Machine`) and the rows of the `critical` path are None where
    nobody asked for them.
    """

    program: Program
    timings: tuple[Timing, ...] = ()
    ranks: Sequence[int] | None = None
    ring: tuple[Wait, ...] = ()
    machine: Machine | None = None
    critical: Array | None = None

    @property
    def title(self) -> str:
        """What the picture shows, in a line: the pattern, its parameters, its ranks."""
        values = [f"{name} = {_told(v)}" for name, v in self.program.parameters.items()]
        told = f" ({', '.join(values)})" if values else ""
        world = self.program.world
        return f"{_name(self.program)}{told} on {world:,} rank{'s' * (world != 1)}"


def _name(program: Program) -> str:
    """The pattern's name; if that is only `main`, as many are, the file's too."""
    path = PurePath(program.definition.module.source.path)
    return f"main of {path.name}" if program.name == "main" != path.stem else program.name


def _told(value: Any) -> str:
    from commlang.verify.values import format_value

    text = format_value(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
