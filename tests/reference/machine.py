"""A machine that runs the events of a Program: start what can start, end what can end, repeat.

It knows nothing of points, hubs or cycles. Sends do not buffer; a collective ends on a member once
all have started it or, if `loose`, a rooted one as soon as its data can have arrived.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from commlang.operations import Kind

if TYPE_CHECKING:
    from commlang.program import Program

INWARD = (Kind.REDUCE, Kind.GATHER)
OUTWARD = (Kind.BROADCAST, Kind.SCATTER)


@dataclass(eq=False)
class Block:
    """Branches that run side by side, or units that run one after the other."""

    side_by_side: bool
    units: list[Any] = field(default_factory=list[Any])
    """Rows and blocks."""


def blocks_of(program: Program, rank: int) -> Block:
    """What a rank does, as a tree."""
    top = Block(side_by_side=False)
    blocks: dict[int, Block] = {-1: top}
    nests = {
        int(k): (int(p), bool(s))
        for k, p, s in zip(
            program.nests.key, program.nests.parent, program.nests.sequence, strict=True
        )
    }

    def block(key: int) -> Block:
        if key not in blocks:
            parent, sequence = nests.get(key, (-1, False))
            blocks[key] = Block(side_by_side=not sequence)
            block(parent).units.append(blocks[key])
        return blocks[key]

    for row in program.rows_of(rank):
        block(int(program.nest[row])).units.append(row)
    return top


class Machine:
    """Runs until nothing moves; then `started` and `ended` hold rows, `stuck` says whether."""

    def __init__(self, program: Program, *, loose: bool = False) -> None:
        self.program = program
        self.loose = loose
        self.kind = [Kind(k) for k in program.kind.tolist()]
        self.partner = self._partners()
        self.meeting = self._meetings()
        self.started: set[int] = set()
        self.ended: set[int] = set()
        self.done: set[Block] = set()
        self.joins: dict[int, list[int]] = defaultdict(list)
        for row, wait in enumerate(program.wait.tolist()):
            self.joins[wait].append(row)
        self.trees = [blocks_of(program, rank) for rank in range(program.world)]
        moved = True
        while moved:
            before = (len(self.started), len(self.ended), len(self.done))
            for tree in self.trees:
                self._advance(tree)
            for row in sorted(self.started - self.ended):
                if self._can_end(row):
                    self.ended.add(row)
            moved = before != (len(self.started), len(self.ended), len(self.done))
        self.stuck = not all(tree in self.done for tree in self.trees)

    def _partners(self) -> dict[int, int]:
        program = self.program
        sends: dict[Any, list[int]] = defaultdict(list)
        recvs: dict[Any, list[int]] = defaultdict(list)
        for row, kind in enumerate(self.kind):
            me, peer = int(program.rank[row]), int(program.peer[row])
            common = (int(program.group[row]), int(program.tag[row]))
            if kind is Kind.SEND:
                sends[me, peer, common].append(row)
            elif kind is Kind.RECV:
                recvs[peer, me, common].append(row)
        found: dict[int, int] = {}
        for channel, rows in sends.items():
            for send, recv in zip(rows, recvs[channel], strict=False):
                found[send], found[recv] = recv, send
        return found

    def _meetings(self) -> dict[int, list[int]]:
        """For each collective call, the calls that meet it; [] if some member never calls."""
        program = self.program
        calls: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for row, kind in enumerate(self.kind):
            if kind.is_collective:
                calls[int(program.group[row])][int(program.rank[row])].append(row)
        found: dict[int, list[int]] = {}
        for group, by_rank in calls.items():
            members = program.groups.entries[group].members
            for rows in by_rank.values():
                for turn, row in enumerate(rows):
                    there = [by_rank[m][turn] for m in members if turn < len(by_rank.get(m, []))]
                    found[row] = there if len(there) == len(members) else []
        return found

    def _advance(self, unit: Any) -> bool:
        """Start what may start in a unit; whether the unit is over."""
        if isinstance(unit, int):
            self.started.add(unit)
            return unit in self.ended or bool(self.program.site_of(unit).asynchronous)
        if unit in self.done:
            return True
        over = True
        for part in unit.units:
            over = self._advance(part) and over
            if not over and not unit.side_by_side:
                return False
        if over:
            self.done.add(unit)
        return over

    def _can_end(self, row: int) -> bool:
        kind = self.kind[row]
        if kind.is_message:
            return self.partner.get(row, -1) in self.started
        if kind is Kind.WAIT:
            return all(other in self.ended for other in self.joins[row])
        if not kind.is_collective:
            return True
        there = self.meeting[row]
        root = int(self.program.peer[row])
        at_root = root == int(self.program.rank[row])
        if self.loose and kind in OUTWARD:
            there = [] if at_root and there else [r for r in there if self.program.rank[r] == root]
            return bool(at_root and self.meeting[row]) or (bool(there) and there[0] in self.started)
        if self.loose and kind in INWARD and not at_root:
            return bool(there)
        return bool(there) and all(other in self.started for other in there)
