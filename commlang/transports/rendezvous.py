"""`rendezvous`: nothing is buffered; what is posted makes progress. `gloo` is exactly that.

A message ends on both sides only after both have started, a collective on a member only after all
have started; a rooted collective promises no more than that its data has arrived (`rooted_meet`
false). gloo was measured to behave so at every size, from 4 B to 64 MB: a send waits for its recv,
asynchronous operations progress however they are waited for, tags part channels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.program.constraints import rendezvous
from commlang.transports.events import Graph

if TYPE_CHECKING:
    from commlang.transports.events import Events


def graph(events: Events, *, rooted_meet: bool = True) -> Graph:
    """The graph of a program where nothing is buffered."""
    edges = rendezvous(
        events.program,
        events.messages,
        events.collectives,
        events.points,
        rooted_meet=rooted_meet,
    )
    return Graph(events.points, edges)
