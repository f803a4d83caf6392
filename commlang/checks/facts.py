"""What several rules need to know of a program, computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from commlang.checks.collectives import first_faults
from commlang.checks.contract_findings import contract_findings
from commlang.checks.handles import handle_uses
from commlang.checks.hangs import find_deadlock, nccl_models, order_hang, queue_hang
from commlang.checks.refusals import find_refusals
from commlang.diagnostics import Label
from commlang.program.context import loop_variables
from commlang.program.matching import all_meet, match_collectives, match_messages
from commlang.program.points import find_points
from commlang.program.regions import Regions
from commlang.syntax import ast
from commlang.transports import RENDEZVOUS, Backend
from commlang.transports.aligned import aligned
from commlang.transports.buffers import least_capacity
from commlang.transports.events import Events

if TYPE_CHECKING:
    from commlang.checks.collectives import Fault
    from commlang.checks.handles import HandleUses
    from commlang.checks.hangs import Deadlock, Hang
    from commlang.checks.refusals import Refusal
    from commlang.diagnostics import Diagnostic
    from commlang.program import Program
    from commlang.program.matching import Collectives, Messages
    from commlang.program.points import Points
    from commlang.transports import Target
    from commlang.transports.nccl import Nccl


@dataclass(frozen=True, eq=False)
class Facts:
    """A program with its matches and its points, and the target that it is checked for.

    For NCCL messages match in issue order whatever their tags, for all others per tag.
    """

    program: Program
    messages: Messages
    collectives: Collectives
    points: Points
    target: Target = RENDEZVOUS

    @cached_property
    def collective_faults(self) -> list[Fault]:
        """Where members of a group disagree, one fault per group."""
        return first_faults(self)

    @cached_property
    def handle_uses(self) -> HandleUses:
        """Which rows bind handles, and what joins them."""
        return handle_uses(self.program)

    @cached_property
    def regions(self) -> Regions:
        """Which elements the rows touch."""
        return Regions(self.program)

    @cached_property
    def events(self) -> Events:
        """What the models of transports start from."""
        return Events(self.program, self.messages, self.collectives, self.points)

    @cached_property
    def tagged(self) -> Messages:
        """Messages as their tags part them, which is what a pattern means."""
        known = self.target.backend is not Backend.NCCL or not self.program.tag.any()
        return self.messages if known else match_messages(self.program)

    @cached_property
    def everything_meets(self) -> bool:
        """Whether every message and call has its counterparts: only then are rings of waits real.

        What waits for an operation that never comes would show rings that no run gets to.
        """
        return all_meet(self.program, self.messages, self.collectives)

    @cached_property
    def aligned(self) -> bool:
        """Whether the program runs in lockstep, so that it ends under every model."""
        return aligned(self.events)

    @property
    def lockstep(self) -> bool:
        """Whether it is aligned whatever becomes of tags."""
        return self.aligned and not self.program.tag.any()

    @cached_property
    def refusals(self) -> list[Refusal]:
        """The statements that the target refuses, and why."""
        return find_refusals(self)

    @cached_property
    def deadlock(self) -> Deadlock:
        """The ring of waits of a program in which everything meets."""
        return find_deadlock(self)

    @cached_property
    def capacity(self) -> int | None:
        """How many messages each channel must buffer to break a deadlock; 0 if unknown, or None."""
        return least_capacity(self.events)

    @cached_property
    def nccl_models(self) -> tuple[Nccl, ...]:
        """The program as NCCL runs it, where the target asks for that."""
        return nccl_models(self)

    @cached_property
    def nccl_hang(self) -> Hang | None:
        """How the program hangs on NCCL although it ends under rendezvous semantics."""
        return order_hang(self)

    @cached_property
    def nccl_queue_hang(self) -> Hang | None:
        """How it hangs only if a device runs its communicators one after the other."""
        return queue_hang(self)

    @cached_property
    def contracts(self) -> list[Diagnostic]:
        """What is wrong with contracts, or cannot be told of them."""
        return contract_findings(self)

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


def gather_facts(program: Program, target: Target = RENDEZVOUS) -> Facts:
    """Match a program and find its points."""
    messages = match_messages(program, tagged=target.backend is not Backend.NCCL)
    collectives = match_collectives(program)
    return Facts(program, messages, collectives, find_points(program), target)
