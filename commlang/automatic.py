"""Patterns that a table of measurements chooses from: `auto` plans."""

from __future__ import annotations

import logging
import sys
import warnings
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from commlang.api import AUTO, Pattern, Tensors
from commlang.errors import PatternError
from commlang.expand.run import MAX_EVENTS
from commlang.program import Program, build
from commlang.tuning.candidates import candidate, largest_tensor, reference
from commlang.tuning.table import Choice, Table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from commlang.plan import Plan
    from commlang.resolve.modules import Definition
    from commlang.schedule import Schedule

_log = logging.getLogger("commlang.auto")


class Auto(Pattern):
    """A collective whose plans take whatever pattern was measured to be fastest.

    To be used wherever a Pattern is: it has the tensors and parameters of the collective. The
    choice is by the world and by the bytes of the largest tensor. Where the table says nothing
    (a world that was not measured, far larger tensors, another backend or torch), or a pattern
    refuses the parameters, as means need the backend's own, the next best is taken, and at last
    the backend's own. `logging` tells at level INFO under `commlang.auto` what was chosen; a table
    of another backend or torch is a warning.
    """

    def __init__(self, table: Table, name: str = "the table") -> None:
        super().__init__(reference(table.collective))
        self.table = table
        self._name = name
        # Whoever edits a table must not make plans do something else.
        self._definitions = {n: candidate(n, table.collective) for n in table.patterns}

    @property
    def name(self) -> str:
        """`auto:` and the collective's name."""
        return f"{AUTO}{self.table.collective}"

    def mismatch(self, backend: str | None) -> str | None:
        """Why the table says nothing about a run on this backend here, or None."""
        why = self.table.mismatch(backend, version("torch"))
        return f"{self._name} is not used: {why}" if why else None

    def choose(self, program: Program) -> tuple[list[Definition], Choice]:
        """The patterns to try, best first, for what the backend's own would do with `program`."""
        largest = largest_tensor(program)
        choice = self.table.choose(program.world, largest[1] if largest else 0)
        return [self._definitions[name] for name in choice.names], choice

    def program(
        self, /, world: int | None = None, *, preset: str | None = None, **values: Any
    ) -> Program:
        """The expanded program of the pattern that is chosen, not checked."""
        own = super().program(world, preset=preset, **values)
        for definition in self._chosen(own):
            try:
                return build(definition, own.world, own.values)
            except PatternError:
                continue
        return own

    def plan(
        self,
        /,
        world: int | None = None,
        *,
        preset: str | None = None,
        tensors: Tensors | None = None,
        max_events: int = MAX_EVENTS,
        schedule: Schedule = "overlap",
        backend: str | None = None,
        nccl_init: str = "lazy",
        **values: Any,
    ) -> Plan:
        """A plan of the pattern that is chosen; raises what `Pattern.plan` does."""
        more: Any = {
            "tensors": tensors,
            "max_events": max_events,
            "schedule": schedule,
            "backend": backend,
            "nccl_init": nccl_init,
        }
        own = super().plan(world, preset=preset, **more, **values)
        for definition in self._chosen(own.program()):
            try:
                return Pattern(definition).plan(own.world, **more, **own.given)
            except PatternError as error:
                _log.info(
                    "`%s` will not do: %s", definition.node.name, error.diagnostics[0].message
                )
        return own

    def _chosen(self, own: Program) -> Iterator[Definition]:
        why = self.mismatch(_backend_here())
        if why is not None:
            warnings.warn(why, stacklevel=3)
            return
        definitions, choice = self.choose(own)
        _log.info("%s", choice.why)
        yield from definitions


def auto(table: str | Path | Table) -> Auto:
    """The collective of a table that `commlang tune` wrote, as a pattern that chooses by it.

    Raises UsageError if the table cannot be read, or names a pattern that is not there or does
    not do the same as the collective.
    """
    if isinstance(table, Table):
        return Auto(table)
    return Auto(Table.read(table), str(table))


def _backend_here() -> str | None:
    """The backend of the process group that this program has, if any."""
    if "torch.distributed" not in sys.modules:
        return None
    from commlang.execute.communicators import backend_here

    return backend_here()
