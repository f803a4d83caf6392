"""What a run must leave, worked out in one process from the scripts of all ranks.

Messages are copied when they are sent and collectives meet when all have come, so the model gets
stuck only where no transport could go on. It says nothing of timing: its values are right only for
scripts without races.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import torch

from tests.differential.memory import Memory, reduced
from tests.differential.script import Branches, Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.differential.script import Script

Tensors = list[dict[str, torch.Tensor]]
_GARBAGE = (99, 55)


class Stuck(Exception):
    """The ranks wait for one another."""


class Model:
    """Runs at once; `tensors` and `seen` are those of each rank at the end. Raises Stuck."""

    def __init__(self, scripts: list[Script], seed: int = 0, garbage: int = 99) -> None:
        self.scripts = scripts
        self.garbage = garbage
        self.memory = [Memory(script, seed, garbage) for script in scripts]
        self.sent: dict[Any, list[torch.Tensor]] = defaultdict(list)
        self.given: dict[Any, dict[int, tuple[Step, list[torch.Tensor]]]] = defaultdict(dict)
        self.turns: dict[Any, int] = defaultdict(int)
        self.place: dict[int, Any] = {}
        """Of each row that was started: its channel and its turn on it."""
        self.results: dict[Any, dict[int, list[torch.Tensor]]] = {}
        self.over: set[int] = set()
        self.by_row = {step.row: (s.rank, step) for s in scripts for step in s.steps()}
        self._run()
        self.tensors: Tensors = [memory.tensors() for memory in self.memory]
        self.seen = [memory.seen for memory in self.memory]

    def _run(self) -> None:
        running = [self._units(script.body, script.rank) for script in self.scripts]
        self.moved = True
        while running:
            if not self.moved:
                raise Stuck
            self.moved = False
            running = [one for one in running if next(one, True) is None]

    # ------------------------------------------------------------------ order

    def _units(self, block: Branches, rank: int) -> Iterator[None]:
        """Go on as far as may be; yields whenever it has to wait."""
        if not block.side_by_side:
            for unit in block.units:
                yield from self._unit(unit, rank)
            return
        for unit in block.units:  # all start before any is waited for
            if isinstance(unit, Step) and unit.kind != "WAIT":
                self._start(unit, rank)
        left = [self._unit(unit, rank) for unit in block.units]
        while left:
            left = [one for one in left if next(one, True) is None]
            if left:
                yield

    def _unit(self, unit: Step | Branches, rank: int) -> Iterator[None]:
        if isinstance(unit, Branches):
            yield from self._units(unit, rank)
            return
        if unit.kind == "WAIT":
            wanted = unit.joins
        else:
            self._start(unit, rank)
            wanted = () if unit.asynchronous else (unit.row,)
        for row in wanted:
            while not self._end(row):
                yield

    def _start(self, step: Step, rank: int) -> None:
        if step.row in self.place:
            return
        self.moved = True
        if step.group < 0:
            self.memory[rank].work(step)
            self.place[step.row] = None
            self.over.add(step.row)
            return
        kind = step.kind if step.kind in ("SEND", "RECV") else ""
        ends = {"SEND": (rank, step.peer), "RECV": (step.peer, rank)}.get(kind, (rank,))
        counter = (step.group, ends, step.tag if kind else 0, kind)
        turn = self.turns[counter]
        self.turns[counter] += 1
        channel = (step.group, ends, step.tag) if kind else (step.group, turn)
        self.place[step.row] = channel, turn
        copies = [view.clone() for view in self.memory[rank].views(step)]
        if kind == "SEND":
            self.sent[channel].append(copies[0])
            self.over.add(step.row)
        elif not kind:
            self.given[channel][rank] = step, copies

    def _end(self, row: int) -> bool:
        """Whether a row that was started is over, once what it gets is there."""
        if row in self.over:
            return True
        rank, step = self.by_row[row]
        if row not in self.place:
            return False
        channel, turn = self.place[row]
        if step.kind == "RECV":
            if len(self.sent[channel]) <= turn:
                return False
            results = [self.sent[channel][turn]]
        else:
            members = self.scripts[0].groups.get(step.group, range(len(self.scripts)))
            if set(self.given[channel]) != set(members):
                return False
            if channel not in self.results:
                self.results[channel] = self._meet(list(members), self.given[channel])
            results = self.results[channel][rank]
        for view, value in zip(self.memory[rank].views(step), results, strict=False):
            view.copy_(value.reshape(view.shape))
        self.over.add(row)
        self.moved = True
        return True

    # --------------------------------------------------------------- meetings

    def _meet(
        self, members: list[int], given: dict[int, tuple[Step, list[torch.Tensor]]]
    ) -> dict[int, list[torch.Tensor]]:
        """What each member of a collective gets, outputs first."""
        steps = [given[m][0] for m in members]
        data = [given[m][1] for m in members]
        first, size = steps[0], len(members)
        root = members.index(first.peer) if first.peer >= 0 else -1
        op, factor = first.op or "sum", first.factor
        results: list[list[torch.Tensor]] = [[] for _ in members]
        match first.kind:
            case "ALL_REDUCE":
                results = [[reduced(op, factor, (d[0] for d in data))]] * size
            case "REDUCE":
                whole = reduced(op, factor, (d[0] for d in data))
                results = [[torch.full_like(whole, self.garbage)]] * size
                results[root] = [whole]
            case "BROADCAST":
                results = [[data[root][0]]] * size
            case "SCATTER":
                results = [[data[root][1 + i]] for i in range(size)]
            case "GATHER":
                results[root] = [d[-1] for d in data]
            case "ALL_GATHER":
                flat = [d[-1].reshape(-1) for d in data]
                listed = first.name == "all_gather"
                results = [flat if listed else [torch.cat(flat)]] * size
            case "REDUCE_SCATTER":
                parts = [_pieces(d[1:], size) for d in data]
                results = [[reduced(op, factor, (p[i] for p in parts))] for i in range(size)]
            case "ALL_TO_ALL":
                parts = [_pieces(d[len(d) // 2 :], size) for d in data]
                for i, d in enumerate(data):
                    come = [p[i] for p in parts]
                    results[i] = come if len(d) > 2 or size == 1 else [torch.cat(come)]
            case _:
                pass
        return dict(zip(members, results, strict=True))


def _pieces(views: list[torch.Tensor], size: int) -> list[torch.Tensor]:
    """One piece per member: given as a list, or as equal parts of one tensor."""
    if len(views) == size:
        return [view.reshape(-1) for view in views]
    return list(views[0].reshape(-1).chunk(size))


def expected(scripts: list[Script], seed: int = 0) -> tuple[Tensors, Tensors]:
    """The tensors of each rank at the end, and where they are defined whatever temps held."""
    one, other = (Model(scripts, seed, garbage) for garbage in _GARBAGE)
    known = [
        {name: tensor == b[name] for name, tensor in a.items()}
        for a, b in zip(one.tensors, other.tensors, strict=True)
    ]
    return one.tensors, known
