"""From the events of a program to flows: messages, copies and local work."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.contracts import field
from commlang.contracts.actions import Act, Action, effective, is_whole
from commlang.expand.record import Column
from commlang.operations import Kind, ReduceOp
from commlang.records import record

if TYPE_CHECKING:
    from commlang.contracts.addresses import Shelf
    from commlang.contracts.flows import Builder
    from commlang.contracts.operands import Operands
    from commlang.dtypes import DType
    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.program.matching import Collectives, Messages

LARGEST_TERM = 1 << 20


@record
class Lowering:
    """What the events of a program are turned into flows with; `moment` is by row."""

    program: Program
    messages: Messages
    collectives: Collectives
    operands: Operands
    moment: Array
    builder: Builder
    shelf: Shelf

    def rows(self, kind: Kind) -> Array:
        return np.flatnonzero(self.program.kind == kind)

    def by_site(self, rows: Array, action: Any) -> Array:
        """The code of each row, from what `action(site number)` says of its statement."""
        sites = self.program.site[rows]
        codes = np.zeros(len(self.program.sites), dtype=np.int16)
        for site in np.flatnonzero(np.bincount(sites, minlength=len(codes))).tolist():
            codes[site] = self.builder.code(action(site))
        return codes[sites]


def lower_messages(low: Lowering) -> None:
    """What a send takes lies in its recv."""
    send, recv = low.messages.send.astype(np.int64), low.messages.recv.astype(np.int64)
    ops = low.operands
    source, target = ops.first[send], ops.first[recv]
    code = low.builder.code(Action(Act.COPY))
    low.builder.add(
        ops.address[source], ops.address[target], ops.length[source], low.moment[recv], code, recv
    )


def lower_arrows(low: Lowering) -> None:
    """Copies and accumulations on one rank."""
    program, ops = low.program, low.operands
    for kind, act in ((Kind.COPY, Act.COPY), (Kind.ACCUMULATE, Act.ACCUMULATE)):
        rows = low.rows(kind)
        if not len(rows):
            continue
        # The source's dtype is that of its buffer, which a statement may name several of.
        source, target = ops.first[rows], ops.first[rows] + 1
        dtypes = ops.dtype_number(source)
        code = np.zeros(len(rows), dtype=np.int16)
        pair = program.site[rows].astype(np.int64) * len(ops.dtypes) + dtypes
        for number in np.flatnonzero(np.bincount(pair)).tolist():
            site, dtype = divmod(number, len(ops.dtypes))
            code[pair == number] = low.builder.code(
                _arrow(act, program.sites[site], ops.dtypes[dtype])
            )
        for index, start, end, length in ops.runs(source, target):
            row = rows[index]
            low.builder.add(start, end, length, low.moment[row], code[index], row)


def _arrow(act: Act, site: Any, source: DType) -> Action:
    op = None if site.op is None else effective(site.op.op, site.dtype)
    same = site.dtype == source
    return Action(act, op, None, None if same else source, None if same else site.dtype)


def lower_numbers(low: Lowering) -> None:
    """`scale` and `fill`."""
    for kind, act, name in ((Kind.SCALE, Act.SCALE, "factor"), (Kind.FILL, Act.FILL, "value")):
        rows = low.rows(kind)
        if not len(rows):
            continue
        sites = low.program.site[rows]
        for site in np.flatnonzero(np.bincount(sites)).tolist():
            _numbers(low, rows[sites == site], site, act, name)


def _numbers(low: Lowering, rows: Array, site: int, act: Act, name: str) -> None:
    """The rows of one statement; its number may differ between them."""
    program, ops = low.program, low.operands
    dtype = program.sites[site].dtype
    argument = dict(program.sites[site].arguments)[name]
    if isinstance(argument, Column):
        bits = program.numbers[program.numbers_at[rows] + argument.index]
        values, which = np.unique(
            bits.view(np.float64) if argument.real else bits, return_inverse=True
        )
        numbers = [Fraction(v).limit_denominator(LARGEST_TERM) for v in values.tolist()]
    else:
        numbers, which = [Fraction(argument)], np.zeros(len(rows), dtype=np.int64)
    rounds = act is Act.SCALE and is_whole(dtype)
    actions = [
        Action(act, factor=n if rounds and n.denominator > 1 else None, target=dtype)
        for n in numbers
    ]
    extra = np.array([field.number(n) for n in numbers], dtype=np.uint64)[which.reshape(-1)]
    code = np.array([low.builder.code(a) for a in actions], dtype=np.int16)[which.reshape(-1)]
    operand = ops.first[rows]
    for index, start, _, length in ops.runs(operand, operand):
        row = rows[index]
        low.builder.add(start, start, length, low.moment[row], code[index], row, extra=extra[index])


def reduction(site: Any, members: int) -> Action:
    """The action of a collective's reduction."""
    op = site.op
    count = members if op.op is ReduceOp.AVG else 1
    return Action(Act.REDUCE, effective(op.op, site.dtype), op.factor, None, site.dtype, count)
