"""One collective over all ranks of several nodes (CL411).

Inside a node ranks talk through shared memory or NVLink, between nodes through a network that is
slower and shared by all ranks of a node. gloo and MPI's simpler algorithms know nothing of nodes:
in an all_reduce by halving, all ranks of a node send half of their data to another node at once. In
two levels, reduce-scatter inside the node, all_reduce between ranks of the same place, all-gather
inside, the ranks of a node together send their data through the network about twice. NCCL plans its
rings and trees by the topology itself, so it is not told. How many ranks a node has is said by
`--ranks-per-node`.

Name the nodes by a mesh, `mesh inter = world // node, intra = node`, and call the patterns of the
library, `hierarchical_all_reduce` and `hierarchical_broadcast`, or their steps.

- Cho and others, BlueConnect: decomposing all-reduce for deep learning on heterogeneous network
  hierarchy, MLSys 2019
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.checks.rule import Rule
from commlang.checks.speed.costs import LARGE, size
from commlang.checks.speed.data import bytes_of
from commlang.diagnostics import Diagnostic, Severity
from commlang.operations import Kind
from commlang.transports import Backend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts

RULE = Rule(
    "CL411",
    "flat-across-nodes",
    Severity.ADVICE,
    invalid=(
        """\
# world: 8
# ranks-per-node: 4
pattern main(x: float32[n], n = 64Mi):
    all_reduce(x)  # CL411
""",
    ),
    valid=(
        """\
# world: 8
# ranks-per-node: 4
from hierarchical.hierarchical_all_reduce import hierarchical_all_reduce

pattern main(x: float32[n], n = 64Mi):
    hierarchical_all_reduce(x, node=4)
""",
        """\
# world: 8
# ranks-per-node: 8
pattern main(x: float32[n], n = 64Mi):
    all_reduce(x)
""",
    ),
)

_PATTERNS = {Kind.ALL_REDUCE: "hierarchical_all_reduce", Kind.BROADCAST: "hierarchical_broadcast"}


def check(facts: Facts) -> Iterator[Diagnostic]:
    """Large calls on groups of several ranks of several nodes, in a pattern without node groups."""
    node = facts.target.ranks_per_node
    if node is None or facts.target.backend is Backend.NCCL or len(facts.collectives.start) < 2:
        return
    program = facts.program
    wide = [_is_wide(entry.members, node) for entry in program.groups.entries]
    inner = [len(e.members) > 1 and _nodes(e.members, node) == 1 for e in program.groups.entries]
    if any(inner) or not any(wide):
        return
    first = facts.collectives.row[facts.collectives.start[:-1]]
    large = np.isin(program.kind[first], list(_PATTERNS)) & (bytes_of(facts, first) >= LARGE)
    told: set[int] = set()
    for row in first[large & np.array(wide)[program.group[first]]].tolist():
        if int(program.site[row]) not in told:
            told.add(int(program.site[row]))
            yield _report(facts, row, node)


def _nodes(members: tuple[int, ...], node: int) -> int:
    return len({rank // node for rank in members})


def _is_wide(members: tuple[int, ...], node: int) -> bool:
    """Whether a group has several nodes, and several ranks on one of them."""
    return 1 < _nodes(members, node) < len(members)


def _report(facts: Facts, row: int, node: int) -> Diagnostic:
    program = facts.program
    site = program.site_of(row)
    members = program.groups.entries[int(program.group[row])].members
    load = size(int(bytes_of(facts, np.array([row]))[0]))
    message = (
        f"{site.name} of {load} over {len(members)} ranks of {_nodes(members, node)} nodes, "
        "and no group keeps to a node"
    )
    notes = ("links between nodes are the slowest, and are shared by all ranks of a node",)
    pattern = _PATTERNS[Kind(site.kind)]
    hint = f"see the library's `{pattern}`: `mesh inter = world // {node}, intra = {node}`"
    return Diagnostic(
        RULE.code, message, (facts.label(row),), notes, hint, severity=Severity.ADVICE
    )
