"""What several rules need to know of a program, computed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commlang.diagnostics import Label
from commlang.program.context import loop_variables
from commlang.program.matching import match_collectives, match_messages
from commlang.program.points import find_points
from commlang.syntax import ast

if TYPE_CHECKING:
    from commlang.program import Program
    from commlang.program.matching import Collectives, Messages
    from commlang.program.points import Points


@dataclass(frozen=True, slots=True)
class Facts:
    """A program with its matches and its points."""

    program: Program
    messages: Messages
    collectives: Collectives
    points: Points

    def label(self, row: int, text: str = "") -> Label:
        """The place of a row's statement."""
        site = self.program.site_of(row)
        return Label(site.source, site.span, text)

    def event(self, row: int) -> str:
        """`rank 3 (s = 5)`: whose event it is, and in which iteration."""
        variables = loop_variables(self.program, [row])[row]
        rank = int(self.program.rank[row])
        return f"rank {rank} ({variables})" if variables else f"rank {rank}"

    def innermost(self, row: int) -> str:
        """The variable of the innermost loop around a row's event, or an empty string."""
        variables = loop_variables(self.program, [row])[row]
        return variables.rsplit(", ", 1)[-1].partition(" = ")[0]

    def origin(self, row: int) -> tuple[str, ...]:
        """`called from path:line:column` for the calls that led to a row's statement."""
        module = self.program.definition.module
        notes: list[str] = []
        for call in self.program.site_of(row).path:
            notes.append(f"called from {module.source.where(call.span)}")
            func = call.func if isinstance(call, ast.Call) else None
            if not isinstance(func, ast.Name) or func.id not in module.symbols:
                break
            module = module.symbols[func.id].module
        return tuple(notes[:-5:-1])

    def place(self, row: int) -> str:
        """`line:column` of a row's statement, with the path where it is another file."""
        site = self.program.site_of(row)
        line, column = site.source.position(site.span.start)
        if site.source is self.program.definition.module.source:
            return f"{line}:{column}"
        return f"{site.source.path}:{line}:{column}"


def gather_facts(program: Program) -> Facts:
    """Match a program and find its points."""
    return Facts(program, match_messages(program), match_collectives(program), find_points(program))
