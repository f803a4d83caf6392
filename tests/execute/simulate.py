"""A reference executor: all ranks of a program in one process, in the plainest way.

Messages are copied when they are sent, so a run gets stuck only where no transport could go on.
Used to make the data that contracts are checked on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import torch

from commlang.operations import Kind, ReduceOp
from commlang.program.matching import match_collectives, match_messages

if TYPE_CHECKING:
    from commlang.program import Program

Fetch = Callable[[int, str], torch.Tensor]

_OPS: dict[ReduceOp, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    ReduceOp.SUM: torch.add,
    ReduceOp.AVG: torch.add,
    ReduceOp.PREMUL_SUM: torch.add,
    ReduceOp.PRODUCT: torch.mul,
    ReduceOp.MIN: torch.minimum,
    ReduceOp.MAX: torch.maximum,
    ReduceOp.BAND: torch.bitwise_and,
    ReduceOp.BOR: torch.bitwise_or,
    ReduceOp.BXOR: torch.bitwise_xor,
}


def simulate(program: Program, initial: Fetch) -> dict[tuple[int, str], torch.Tensor]:
    """The tensor parameters of every rank after a run that starts from `initial`."""
    run = _Run(program, initial)
    run.finish()
    return {
        (rank, name): run.flat(rank, int(_at(view.buffer, rank))).view(
            [int(_at(d, rank)) for d in view.shape]
        )
        for name, view in program.tensors.items()
        for rank in range(program.world)
    }


def _at(value: Any, lane: int) -> Any:
    return value if isinstance(value, int) else value[lane]


class _Run:
    def __init__(self, program: Program, initial: Fetch) -> None:
        self.program = program
        self.buffers: dict[tuple[int, int], torch.Tensor] = {}
        for name, view in program.tensors.items():
            for rank in range(program.world):
                flat = initial(rank, name).clone().reshape(-1)
                self.buffers[rank, int(_at(view.buffer, rank))] = flat
        self.partner = match_messages(program).partner
        self.sent: dict[int, torch.Tensor] = {}
        self.done: set[int] = set()
        self.waiting: defaultdict[int, list[int]] = defaultdict(list)
        for row in range(len(program)):
            if program.site_of(row).asynchronous:
                self.waiting[int(program.wait[row])].append(row)
        meetings = match_collectives(program)
        self.meetings = [
            meetings.row[a:b].tolist()
            for a, b in zip(meetings.start[:-1], meetings.start[1:], strict=True)
        ]
        self.meeting_of = {row: rows for rows in self.meetings for row in rows}
        self.inputs: dict[int, list[torch.Tensor]] = {}
        self.outputs: dict[int, list[torch.Tensor]] = {}

    # ------------------------------------------------------------------ order

    def finish(self) -> None:
        """Let each rank go on as far as it can, until all are through."""
        ranks = [self._rank(rank) for rank in range(self.program.world)]
        while ranks:
            before = len(self.done), len(self.sent), len(self.inputs)
            ranks = [r for r in ranks if next(r, None) is not None]
            after = len(self.done), len(self.sent), len(self.inputs)
            assert not ranks or before != after, "the ranks wait for one another"

    def _rank(self, rank: int) -> Iterator[bool]:
        """Run a rank's rows; yields when it has to wait."""
        for unit in self._units(rank):
            left = unit
            while left:
                blocked: set[int] = set()
                still = [row for row in left if not self._row_or_block(row, blocked)]
                if still and len(still) == len(left):
                    yield True
                left = still

    def _units(self, rank: int) -> Iterator[list[int]]:
        """Rows that one outermost `parallel:` holds, or single rows."""
        unit: list[int] = []
        last = -1
        for row in self.program.rows_of(rank):
            path = self._path(row)
            if unit and (not path or path[0] != last):
                yield unit
                unit = []
            last = path[0] if path else -1
            unit.append(row)
        if unit:
            yield unit

    def _path(self, row: int) -> list[int]:
        """The keys of the constructs around a row, from the outside."""
        nests = self.program.nests
        parent = dict(zip(nests.key.tolist(), nests.parent.tolist(), strict=True))
        path: list[int] = []
        nest = int(self.program.nest[row])
        while nest >= 0:
            path.insert(0, nest)
            nest = parent.get(nest, -1)
        return path

    def _row_or_block(self, row: int, blocked: set[int]) -> bool:
        """Run a row unless an earlier one of the same `sequence:` still has to run."""
        sequences = self._path(row)[1::2]
        if blocked.isdisjoint(sequences) and self._run(row):
            return True
        blocked.update(sequences)
        return False

    # ------------------------------------------------------------------- rows

    def _run(self, row: int) -> bool:
        """Run a row if it can; tells whether it is over."""
        kind = self.program.site_of(row).kind
        if kind is Kind.WAIT:
            return self._joined(row)
        if kind.is_local:
            self._local(row, kind)
            return True
        later = self.program.site_of(row).asynchronous
        return self._start(row, kind) or later or self._end(row, kind)

    def _joined(self, row: int) -> bool:
        for posted in self.waiting[row]:
            self._end(posted, self.program.site_of(posted).kind)
        return self.done.issuperset(self.waiting[row])

    def _start(self, row: int, kind: Kind) -> bool:
        """Post an operation; only a send is over with that."""
        if kind is Kind.SEND:
            if row not in self.sent:
                self.sent[row] = self._views(row)[0].clone()
            self.done.add(row)
            return True
        if kind.is_collective and row not in self.inputs:
            self.inputs[row] = [view.clone() for view in self._views(row)]
        return False

    def _end(self, row: int, kind: Kind) -> bool:
        if row in self.done:
            return True
        if kind is Kind.RECV:
            send = int(self.partner[row])
            if send not in self.sent:
                return False
            self._views(row)[0].copy_(self.sent[send])
        else:
            rows = self.meeting_of[row]
            if not all(r in self.inputs for r in rows):
                return False
            if row not in self.outputs:
                self._meet(rows)
            for view, value in zip(self._views(row), self.outputs[row], strict=False):
                view.reshape(-1).copy_(value.reshape(-1))
        self.done.add(row)
        return True

    # ---------------------------------------------------------------- meetings

    def _meet(self, rows: list[int]) -> None:
        """What each member of a collective is left with: its outputs come first."""
        program, site = self.program, self.program.site_of(rows[0])
        given = [self.inputs[row] for row in rows]
        root = next((i for i, r in enumerate(rows) if program.rank[r] == program.peer[r]), 0)
        size = len(rows)
        results: list[list[torch.Tensor]] = [[] for _ in rows]
        match site.kind:
            case Kind.ALL_REDUCE:
                results = [[_reduce(site.op, [v[0] for v in given])] for _ in rows]
            case Kind.REDUCE:
                whole = _reduce(site.op, [v[0] for v in given])
                results = [[whole if i == root else given[i][0] * 0] for i in range(size)]
            case Kind.BROADCAST:
                results = [[given[root][0]] for _ in rows]
            case Kind.SCATTER:
                results = [[given[root][1 + i]] for i in range(size)]
            case Kind.GATHER:
                results[root] = [v[-1] for v in given]
            case Kind.ALL_GATHER:
                listed = [v[-1].reshape(-1) for v in given]
                results = [
                    [torch.cat(listed)] if len(v) == 2 and size > 1 else listed for v in given
                ]
            case Kind.REDUCE_SCATTER:
                lists = [_pieces(v[1:], size) for v in given]
                results = [[_reduce(site.op, [v[i] for v in lists])] for i in range(size)]
            case Kind.ALL_TO_ALL:
                lists = [_pieces(v[len(v) // 2 :], size) for v in given]
                for i, views in enumerate(given):
                    got = [v[i] for v in lists]
                    results[i] = got if len(views) > 2 else [torch.cat(got)]
            case _:
                pass
        self.outputs.update(zip(rows, results, strict=True))

    # ------------------------------------------------------------------- local

    def _local(self, row: int, kind: Kind) -> None:
        views, site = self._views(row), self.program.site_of(row)
        arguments = self.program.arguments_of(row)
        match kind:
            case Kind.COPY:
                views[1].copy_(views[0].reshape(views[1].shape))
            case Kind.ACCUMULATE:
                assert site.op is not None
                source = views[0].reshape(views[1].shape).to(views[1].dtype)
                views[1].copy_(_OPS[site.op.op](views[1], source))
            case Kind.SCALE:
                factor = Fraction(arguments["factor"])
                views[0].mul_(factor.numerator).div_(factor.denominator)
            case Kind.FILL:
                views[0].fill_(float(arguments["value"]))
            case _:
                pass  # compute and externs leave their data alone

    # -------------------------------------------------------------------- data

    def flat(self, rank: int, buffer: int) -> torch.Tensor:
        """A buffer; temps are made with something in them that no contract expects."""
        key = rank, buffer
        if key not in self.buffers:
            block = self.program.buffer_of(buffer)
            dtype: torch.dtype = getattr(torch, block.dtype.name)
            self.buffers[key] = torch.full([block.capacity], 99).to(dtype)
        return self.buffers[key]

    def _views(self, row: int) -> list[torch.Tensor]:
        program, operands = self.program, self.program.operands
        rank, first = int(program.rank[row]), int(program.first[row])
        views: list[torch.Tensor] = []
        for i in range(first, first + int(program.count[row])):
            flat = self.flat(rank, int(operands.buffer[i]))
            offset, layout = int(operands.offset[i]), int(operands.layout[i])
            shape, strides = (int(operands.length[i]),), (1,)
            if layout >= 0:
                shape, strides = operands.layouts[layout]
            views.append(flat.as_strided(shape, strides, offset))
        return views


def _pieces(views: list[torch.Tensor], size: int) -> list[torch.Tensor]:
    """One piece per member: given as a list, or as equal parts of one tensor."""
    if len(views) == size:
        return [view.reshape(-1) for view in views]
    return list(views[0].reshape(-1).chunk(size))


def _reduce(op: Any, parts: list[torch.Tensor]) -> torch.Tensor:
    if op.factor is not None:
        parts = [part * op.factor.numerator / op.factor.denominator for part in parts]
    result = parts[0].clone()
    for part in parts[1:]:
        result = _OPS[op.op](result, part.reshape(result.shape))
    return (result / len(parts)).to(result.dtype) if op.op is ReduceOp.AVG else result
