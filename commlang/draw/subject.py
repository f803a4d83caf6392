"""What is drawn: a program, and whatever else is known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commlang.records import entity

if TYPE_CHECKING:
    from commlang.checks.deadlock import Wait
    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.program.timing import Timing


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
    ranks: tuple[int, ...] | None = None
    ring: tuple[Wait, ...] = ()
    machine: Any = None
    critical: Array | None = None

    @property
    def title(self) -> str:
        """What the picture shows, in a line: the pattern, its parameters, its ranks."""
        from commlang.verify.values import format_value

        values = [f"{k} = {format_value(v)}" for k, v in self.program.parameters.items()]
        told = f" ({', '.join(values)})" if values else ""
        return f"{self.program.name}{told} on {self.program.world:,} ranks"
