"""A program as moves between cells, run once on symbols."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.contracts import field
from commlang.contracts.addresses import Addresses, Shelf
from commlang.contracts.flows import Builder
from commlang.contracts.lowering import Lowering, lower_arrows, lower_messages, lower_numbers
from commlang.contracts.meetings import lower_collectives
from commlang.contracts.moves import Moves, expand, run
from commlang.contracts.operands import Operands
from commlang.contracts.order import moments
from commlang.contracts.regions import Cells, cut
from commlang.contracts.work import lower_work
from commlang.records import record

if TYPE_CHECKING:
    from commlang.contracts.flows import Flows
    from commlang.contracts.regions import Pairs
    from commlang.contracts.work import Work
    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.program.matching import Collectives, Messages


@record
class Model:
    """What the events of a program do to data, before it is known where regions are cut."""

    addresses: Addresses
    builder: Builder
    flows: Flows
    work: Work
    moment: Array
    shelf: int
    """The first address that is free for what contracts compute."""


@record
class State:
    """The cells, the moves, and the values that these leave: `count` at the end, then at entry.

    Behind the cells, calls of externs have a value each.
    """

    cells: Cells
    moves: Moves
    values: Array
    count: int


def model_of(program: Program, messages: Messages, collectives: Collectives) -> Model:
    """The model of a program in which everything meets and nothing hangs."""
    addresses = Addresses(program)
    builder, shelf = Builder(), Shelf(addresses.end)
    moment = moments(program, messages, collectives)
    operands = Operands(program, addresses)
    low = Lowering(program, messages, collectives, operands, moment, builder, shelf)
    lower_messages(low)
    lower_arrows(low)
    lower_numbers(low)
    lower_collectives(low)
    work = lower_work(low)
    return Model(addresses, builder, builder.flows(), work, moment, shelf.end)


def run_model(model: Model, links: list[Pairs]) -> State:
    """Cut the regions, also as the links of contracts want it, and run the program."""
    flows, work = model.flows, model.work
    pairs = [(flows.source, flows.target, flows.length), model.builder.links(), *links]
    pairs += [(p.start, p.start, p.length) for p in (work.reads, work.writes)]
    cells = cut(pairs)
    moves = expand(model.builder, flows, work, model.moment, cells)
    entry = field.mix(cells.cuts)
    count = len(cells) + len(work.seed)
    values = np.concatenate([entry, work.seed, entry, work.seed])
    run(moves, values[:count])
    return State(cells, moves, values, count)
