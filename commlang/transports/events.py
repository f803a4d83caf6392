"""What every model starts from, and what it makes of that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.program.cycles import find_cycle, has_cycle
from commlang.records import record

if TYPE_CHECKING:
    from commlang.program import Program
    from commlang.program.constraints import Edges
    from commlang.program.matching import Collectives, Messages
    from commlang.program.points import Points


@record
class Events:
    """A program, who meets whom in it, and when its operations start and end."""

    program: Program
    messages: Messages
    collectives: Collectives
    points: Points


@record
class Graph:
    """A model's answer: the program hangs if and only if there is a cycle.

    `points.start` and `points.end` give the nodes at which each row starts and ends. `hosts` are
    nodes at which hosts arrive at the making of a communicator, or leave it.
    """

    points: Points
    edges: Edges
    hosts: range = range(0)

    def cycle(self) -> list[int] | None:
        """The stored edges of a short cycle, or None."""
        return find_cycle(self.points, self.edges)

    def hangs(self) -> bool:
        """Whether there is a cycle."""
        return has_cycle(self.points, self.edges)

    def between_hosts(self, edge: int) -> bool:
        """Whether a stored edge says that one rank's host waits for another's."""
        return self.edges.cause[edge] >= 0 and int(self.edges.source[edge]) in self.hosts
