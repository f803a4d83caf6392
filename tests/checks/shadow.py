"""The rules on data once more, element by element: slow, simple, and apart from their code.

Findings are told as lines of the text, in which every statement has a line of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING

from commlang.operations import Kind

if TYPE_CHECKING:
    from commlang.program import Program

Element = tuple[int, int]
"""A buffer of a rank and the number of an element."""


@dataclass(frozen=True)
class Operand:
    region: tuple[int, ...]
    elements: frozenset[Element]
    reads: bool
    writes: bool

    def meets(self, other: Operand) -> bool:
        return (self.writes or other.writes) and bool(self.elements & other.elements)


@dataclass
class Event:
    row: int
    line: int
    kind: Kind
    name: str
    root: bool
    wait: int
    place: int
    members: int
    operands: list[Operand]
    chain: list[tuple[int, bool]]
    """The constructs around it from the inside (key, whether a sequence)."""
    key: int

    @cached_property
    def reads(self) -> set[Element]:
        return {e for o in self.operands if o.reads for e in o.elements}

    @cached_property
    def writes(self) -> set[Element]:
        return {e for o in self.operands if o.writes for e in o.elements}

    @property
    def undefines(self) -> bool:
        return self.kind == Kind.REDUCE and not self.root

    def branches(self) -> dict[int, int]:
        """For each `parallel:` around it, the branch of it that it belongs to."""
        found: dict[int, int] = {}
        below = self.key
        for key, sequence in self.chain:
            if not sequence:
                found[key] = below
            below = key
        return found

    def apart(self, other: Event) -> bool:
        mine, theirs = self.branches(), other.branches()
        return any(theirs.get(key, branch) != branch for key, branch in mine.items())

    def meets(self, other: Event) -> bool:
        return bool(self.writes & (other.reads | other.writes) or self.reads & other.writes)


@dataclass
class Verdict:
    """What must be found: lines, or pairs of lines."""

    overlaps: set[tuple[int, int]] = field(default_factory=set)
    races: set[tuple[int, int]] = field(default_factory=set)
    """(async operation, what touches its data), one after the other in the text's order."""
    beside: set[tuple[int, int]] = field(default_factory=set)
    """The same, where what touches is in a branch beside that of the wait."""
    unwritten: dict[int, set[frozenset[Element]]] = field(default_factory=dict)
    """Lines that read elements of a temp without contents, with what these reads read."""
    excused: set[frozenset[Element]] = field(default_factory=set)
    """What is read beside the branch that writes it: that is an overlap."""
    undefined: set[int] = field(default_factory=set)
    aliased: set[int] = field(default_factory=set)


def judge(program: Program) -> Verdict:
    verdict = Verdict()
    for rank in range(program.world):
        events = [_event(program, row) for row in program.rows_of(rank)]
        _side_by_side(events, verdict)
        _races(events, verdict)
        _temps(program, events, verdict)
        _reduces(events, verdict)
        verdict.aliased |= {e.line for e in events if _aliased(e)}
    return verdict


def _event(program: Program, row: int) -> Event:
    site = program.site_of(row)
    nests = {
        int(k): (int(p), bool(s))
        for k, p, s in zip(
            program.nests.key, program.nests.parent, program.nests.sequence, strict=True
        )
    }
    chain: list[tuple[int, bool]] = []
    nest = int(program.nest[row])
    while nest >= 0:
        parent, sequence = nests.get(nest, (-1, False))
        chain.append((nest, sequence))
        nest = parent
    group, rank = int(program.group[row]), int(program.rank[row])
    members = program.groups.entries[group].members if group >= 0 else (rank,)
    return Event(
        row,
        site.source.position(site.span.start)[0],
        Kind(site.kind),
        site.name,
        rank == int(program.peer[row]),
        int(program.wait[row]) if site.asynchronous else -2,
        members.index(rank),
        len(members),
        [_operand(program, row, i) for i in range(int(program.count[row]))],
        chain,
        int(program.key[row]),
    )


def _operand(program: Program, row: int, number: int) -> Operand:
    ops, at = program.operands, int(program.first[row]) + number
    buffer, offset, length, layout, access = (
        int(c[at]) for c in (ops.buffer, ops.offset, ops.length, ops.layout, ops.access)
    )
    shape, strides = ops.layouts[layout] if layout >= 0 else ((length,), (1,))
    places = (
        offset + sum(i * s for i, s in zip(index, strides, strict=True))
        for index in product(*map(range, shape))
    )
    elements = frozenset((buffer, place) for place in places)
    reads, writes = access != 1, access > 0
    if program.site_of(row).kind == Kind.BROADCAST:
        reads = int(program.rank[row]) == int(program.peer[row])
        writes = not reads
    return Operand((buffer, offset, length, layout), elements, reads, writes)


def _side_by_side(events: list[Event], verdict: Verdict) -> None:
    for one, two in combinations(events, 2):
        if one.apart(two) and one.meets(two):
            verdict.overlaps.add((one.line, two.line))


def _races(events: list[Event], verdict: Verdict) -> None:
    by_row = {event.row: event for event in events}
    for one, two in combinations(events, 2):
        if one.wait < 0 or not one.meets(two):
            continue
        if two.row < one.wait:
            verdict.races.add((one.line, two.line))
        if by_row[one.wait].apart(two) and not one.apart(two):
            verdict.beside.add((one.line, two.line))


def _temps(program: Program, events: list[Event], verdict: Verdict) -> None:
    writers: dict[Element, Event] = {}
    for event in events:
        for element in event.writes:
            writers.setdefault(element, event)
    for event in events:
        for operand in event.operands:
            if not operand.reads or program.buffer_of(operand.region[0]).scope is None:
                continue
            for element in operand.elements:
                writer = writers.get(element)
                if writer is not None and writer.row < event.row:
                    continue
                if writer is not None and writer.apart(event):
                    verdict.excused.add(operand.elements)
                else:
                    verdict.unwritten.setdefault(event.line, set()).add(operand.elements)


def _reduces(events: list[Event], verdict: Verdict) -> None:
    lost: dict[Element, Event] = {}
    pending: dict[int, list[Event]] = {}
    for event in events:
        for reduce in pending.get(event.row, []):
            lost |= dict.fromkeys(reduce.writes, event)
        for element in event.reads:
            if element in lost and not lost[element].apart(event):
                verdict.undefined.add(event.line)
        if not event.undefines:
            for element in event.writes:
                lost.pop(element, None)
        elif event.wait == -2:
            lost |= dict.fromkeys(event.writes, event)
        else:
            pending.setdefault(event.wait, []).append(event)


def _aliased(event: Event) -> bool:
    if event.kind == Kind.COMPUTE:
        return False
    pairs = combinations(range(len(event.operands)), 2)
    return any(
        event.operands[i].meets(event.operands[j]) and not _in_place(event, i, j) for i, j in pairs
    )


def _in_place(event: Event, i: int, j: int) -> bool:
    """Whether operands i < j of an event may share elements."""
    one, two = event.operands[i], event.operands[j]
    last, own, size = len(event.operands) - 1, event.place, event.members
    same = one.region == two.region
    match event.kind:
        case Kind.COPY | Kind.ACCUMULATE:
            return same
        case Kind.ALL_GATHER if event.name == "all_gather":
            return j == last and same and i == own
        case Kind.GATHER:
            return j == last and same and i == own
        case Kind.ALL_GATHER:
            return sorted(two.elements) == _part(one, own, size)
        case Kind.REDUCE_SCATTER if event.name == "reduce_scatter":
            return i == 0 and same and j == 1 + own
        case Kind.SCATTER:
            return i == 0 and same and j == 1 + own
        case Kind.REDUCE_SCATTER:
            return sorted(one.elements) == _part(two, own, size)
        case Kind.ALL_TO_ALL if event.name == "all_to_all":
            return same and i == own and j == size + own
        case _:
            return False


def _part(operand: Operand, own: int, size: int) -> list[Element]:
    elements = sorted(operand.elements)
    many = len(elements) // size
    return elements[own * many : (own + 1) * many]
