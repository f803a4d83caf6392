"""Contracts evaluated on symbols: values of cells instead of tensors."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from commlang.contracts import field
from commlang.contracts.actions import Act, Action, effective, is_whole, prepared
from commlang.contracts.addresses import MAX_CELLS, Shelf, TooLarge
from commlang.contracts.computed import Combined, Filled, Joined, Packed, Reduced
from commlang.contracts.evaluator import ContractEvaluator
from commlang.contracts.lists import spread_list
from commlang.contracts.moves import step
from commlang.contracts.regions import spread
from commlang.contracts.symbolic_calls import call_on_symbols
from commlang.contracts.views import FINAL, OLD, is_single, joint
from commlang.expand import arrays
from commlang.expand.fault import fail
from commlang.expand.values import Function, View, row_major, take
from commlang.operations import ReduceOp
from commlang.records import record
from commlang.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Generator

    from commlang.contracts.addresses import Addresses
    from commlang.contracts.computed import Called, Computed
    from commlang.contracts.regions import Cells, Pairs
    from commlang.contracts.views import Run
    from commlang.contracts.work import Sample
    from commlang.dtypes import DType
    from commlang.expand.arrays import Bool, Int
    from commlang.expand.record import Nest, Recording
    from commlang.expand.scope import Scope
    from commlang.expand.values import Value
    from commlang.program.columns import Array

_OPS = {
    "+": ReduceOp.SUM,
    "*": ReduceOp.PRODUCT,
    "&": ReduceOp.BAND,
    "|": ReduceOp.BOR,
    "^": ReduceOp.BXOR,
    "min": ReduceOp.MIN,
    "max": ReduceOp.MAX,
}
Columns: TypeAlias = Callable[["Array", "Array", "Array"], tuple["Array", "Array", "Array"]]
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@record
class Step:
    """One thing that a contract computes, cell by cell; see `Moves`."""

    action: Action
    source: Array
    target: Array
    extra: Array


@record
class Comparison:
    """Cells of which `got op expected` was not seen to hold: one entry per pair of cells.

    `lane` is the lane of `scope`; `got` and `expected` are indices of the evaluator's values.
    `cast` is what is done to `expected` first. `certain` tells that what is false here makes the
    contract false, if anything does: it stands under no `not`, for example.
    """

    node: ast.Expr
    op: str
    scope: Scope
    lane: Array
    got: Array
    expected: Array
    cast: Action
    certain: bool


class SymbolicEvaluator(ContractEvaluator):
    """Tensors are views whose offsets are addresses; the buffer tells FINAL from OLD.

    Results get addresses of their own, in the order in which they are computed. As long as
    `values` is None, no cells exist yet: what would have to be cut alike is only noted in `links`,
    and every comparison is taken to hold. `values` holds those of all cells, then those at entry.
    """

    def __init__(
        self,
        recording: Recording,
        addresses: Addresses,
        cells: Cells | None = None,
        values: Array | None = None,
        settled: Settled | None = None,
        samples: dict[Sample, int] | None = None,
    ) -> None:
        super().__init__(recording)
        self.addresses = addresses
        self.shelf = Shelf(0)
        self.cells = cells
        self.values = values
        self.settled = settled or Settled()
        self._samples = samples or {}
        self.samples = dict(self._samples)
        """Where the operands of functions have samples, the contract's own functions included."""
        self.links: list[Pairs] = []
        self.steps: list[Step] = []
        self.open: list[Comparison] = []
        self.astray = False
        """Whether regions met that are not cut alike: the links say what is to be cut."""
        self._temps: list[tuple[str, ast.Node, Scope]] = []
        self.lanes: Scope | None = None
        """The lanes of the contract that is evaluated."""
        self._monotone = True
        self._around: list[bool] = []

    def begin(self, shelf: int) -> None:
        """Start with another contract, whose results lie from an address on."""
        self.shelf = Shelf(shelf)
        self.links, self.steps, self.open, self.astray = [], [], [], False
        self.samples = dict(self._samples)

    # ------------------------------------------------------------------- tensors

    def given(self, name: str, view: View, scope: Scope, *, old: bool) -> View:
        buffer = arrays.broadcast(view.buffer, scope.lanes)
        start = self.addresses.of(scope.ranks, buffer)
        return replace(view, buffer=OLD if old else FINAL, offset=start + view.offset)

    def allocate(
        self,
        name: str,
        dtype: Any,
        shape: tuple[Int, ...],
        node: ast.Node,
        scope: Scope,
        nest: Nest | None,
    ) -> View:
        self._temps.append((name, node, scope))
        return View(OLD + len(self._temps), 0, shape, row_major(shape), dtype)

    def _readable(self, *views: Value) -> None:
        for view in views:
            top = arrays.top(view.buffer) if isinstance(view, View) else 0
            if top > OLD:
                name, node, scope = self._temps[top - OLD - 1]
                hint = "a contract speaks of the pattern's parameters"
                fail(scope, node, "CL104", f"a contract reads the temp `{name}`", hint=hint)

    def computed(self, what: Computed, shape: tuple[Int, ...], dtype: DType, scope: Scope) -> View:
        match what:
            case Reduced(op, items):
                return self._reduced(op.op, op.factor, items, shape, dtype, scope)
            case Joined(items):
                return self._joined(items, shape, dtype, scope)
            case Packed(view):
                self._readable(view)
                lanes = 1 if is_single(view) else scope.lanes
                result = self.region(shape, dtype, lanes)
                self._act(Action(Act.COPY), view, result.offset, lanes)
                return result
            case Filled(value):
                varying = any(map(arrays.is_array, (value, *shape)))
                lanes = scope.lanes if varying else min(1, scope.lanes)
                result = self.region(shape, dtype, lanes)
                self._update(Action(Act.FILL, target=dtype), result, lanes, value)
                return result
            case Combined(op, a, b):
                self._readable(a, b)
                single = all(
                    is_single(v) if isinstance(v, View) else not arrays.is_array(v) for v in (a, b)
                )
                lanes = 1 if single else scope.lanes
                return self._combined(op, a, b, self.region(shape, dtype, lanes), lanes)

    def called(self, call: Called, scope: Scope) -> list[View]:
        self._readable(*(view for _, view in call.read))
        return call_on_symbols(self, call, scope)

    def move(self, action: Action, run: Run, columns: Columns) -> None:
        """Act on cells: `columns` gives source, target and extra of a run's two sides, by lane."""
        found = self._cells(run.one, run.other, run.length)
        if found is None or self.values is None:
            return
        one, other, owner = found
        entry = Step(action, *columns(one, other, run.lane[owner]))
        self.steps.append(entry)
        step(action, self.values, entry.source, entry.target, entry.extra)

    def region(self, shape: tuple[Int, ...], dtype: DType, lanes: int) -> View:
        """Room for a tensor on each lane."""
        numel: Int = 1
        for dim in shape:
            numel = numel * dim
        start: Any = self.shelf.take(arrays.broadcast(numel, lanes))
        single = lanes == 1 and all(isinstance(dim, int) for dim in shape)
        return View(FINAL, int(start[0]) if single else start, shape, row_major(shape), dtype)

    def _reduced(
        self,
        op: ReduceOp,
        factor: Fraction | None,
        sequence: Any,
        shape: tuple[Int, ...],
        dtype: DType,
        scope: Scope,
    ) -> View:
        items, counts, owner = spread_list(sequence, scope.lanes)
        self._readable(items)
        result = self.region(shape, dtype, len(counts))
        start = arrays.broadcast(result.offset, len(counts))
        averaged = op is ReduceOp.AVG
        for count in sorted(set(counts.tolist())) if averaged else [1]:
            chosen = np.flatnonzero(counts[owner] == count) if averaged else None
            action = Action(Act.REDUCE, effective(op, dtype), factor, None, dtype, count)
            lanes = owner if chosen is None else owner[chosen]
            part = items if chosen is None else take(items, chosen)
            self._act(action, part, start[lanes], len(lanes))
        return result

    def _joined(self, sequence: Any, shape: tuple[Int, ...], dtype: DType, scope: Scope) -> View:
        items, counts, owner = spread_list(sequence, scope.lanes)
        self._readable(items)
        result = self.region(shape, dtype, len(counts))
        start = arrays.broadcast(result.offset, len(counts))
        numel = arrays.broadcast(items.numel, len(owner))
        before = np.cumsum(numel) - numel
        first = (np.cumsum(counts) - counts)[owner]
        place = start[owner] + before - before[first] if len(owner) else before
        self._act(Action(Act.COPY), items, place, len(owner))
        return result

    def _combined(self, op: str, a: Value, b: Value, result: View, lanes: int) -> View:
        start, dtype = result.offset, result.dtype
        if op in ("-", "/"):
            self._load(b, result, lanes)
            if op == "-":
                self._update(Action(Act.SCALE, target=dtype), result, lanes, -1)
            elif isinstance(b, View) or is_whole(dtype):
                self._update(Action(Act.INVERT, target=dtype), result, lanes, 0)
            else:
                inverse = 1 / Fraction(b) if not arrays.is_array(b) else 1 / b
                self._update(Action(Act.FILL, target=dtype), result, lanes, inverse)
            a, b, op = b, a, "+" if op == "-" else "*"
        else:
            self._load(a, result, lanes)
        action = Action(Act.ACCUMULATE, effective(_OPS[op], dtype))
        if isinstance(b, View):
            self._act(action, b, start, lanes)
        elif op == "*":
            self._update(Action(Act.SCALE, target=dtype), result, lanes, b)
        else:
            other = self.region(result.shape, dtype, lanes)
            self._update(Action(Act.FILL, target=dtype), other, lanes, b)
            self._act(action, other, start, lanes)
        return result

    def _load(self, value: Value, result: View, lanes: int) -> None:
        if isinstance(value, View):
            self._act(Action(Act.COPY), value, result.offset, lanes)
        else:
            self._update(Action(Act.FILL, target=result.dtype), result, lanes, value)

    def _update(self, action: Action, view: View, lanes: int, number: Any) -> None:
        """Let an action with a number work on a contiguous result."""
        if arrays.is_array(number):
            numbers = [
                field.number(Fraction(n).limit_denominator(1 << 20)) for n in number.tolist()
            ]
            extra = np.array(numbers, dtype=np.uint64)
        else:
            extra = np.full(lanes, field.number(Fraction(number)), dtype=np.uint64)
        self._act(action, view, view.offset, lanes, extra)

    def _act(
        self, action: Action, view: View, start: Int, lanes: int, extra: Array | None = None
    ) -> None:
        """Let a view act on contiguous regions from `start` on, lane by lane."""

        def columns(source: Array, target: Array, lane: Array) -> tuple[Array, Array, Array]:
            number = np.zeros(len(lane), np.uint64) if extra is None else extra[lane]
            return self.index_of(view, source, lane), target, number

        self.move(action, joint(view, None, start, lanes), columns)

    def index_of(self, view: View, cell: Array, lane: Array) -> Array:
        """Cells of a view as indices of `values`: those at entry come behind the others."""
        assert self.values is not None
        buffer = view.buffer[lane] if isinstance(view.buffer, np.ndarray) else view.buffer
        return cell + np.asarray(buffer == OLD) * (len(self.values) // 2)

    def _cells(self, one: Array, other: Array, length: Array) -> tuple[Array, Array, Array] | None:
        """The cells of two regions, pair by pair, and which region each is of.

        None if they are not cut alike, or not yet at all.
        """
        keep = length > 0
        self.links.append((one[keep], other[keep], length[keep]))
        if self.cells is None or self.astray:
            return None
        cells, index = self.cells, np.flatnonzero(keep)
        one, other, length = self.links[-1]
        ends = (one, one + length, other, other + length)
        if not all(cells.are_cuts(end).all() for end in ends):
            self.astray = True
            return None
        first, count = cells.expand(one, length)
        second, count_two = cells.expand(other, length)
        if int(count.sum()) > 2 * MAX_CELLS:
            raise TooLarge("the contract compares too many regions")
        left, owner = spread(first, count)
        right, _ = spread(second, count)
        self.astray = not np.array_equal(count, count_two) or bool(
            (cells.cuts[left] - one[owner] != cells.cuts[right] - other[owner]).any()
        )
        return None if self.astray else (left, right, index[owner])

    # --------------------------------------------------------------- comparisons

    def compare_tensors(self, node: ast.Expr, op: str, a: Value, b: Value, scope: Scope) -> Bool:
        self._readable(a, b)
        if not isinstance(a, View) or self._rating(b) > self._rating(a):
            a, b, op = b, a, _MIRRORED.get(op, op)
        if not isinstance(b, View):
            lanes = 1 if is_single(a) and not arrays.is_array(b) else scope.lanes
            number = self.region(a.shape, a.dtype, lanes)
            self._update(Action(Act.FILL, target=a.dtype), number, lanes, b)
            b = number
        single = is_single(a, b)
        lanes = min(1, scope.lanes) if single else scope.lanes
        run = joint(a, b, 0, lanes)
        found = self._cells(run.one, run.other, run.length)
        if found is None or self.values is None:
            return True
        left, right, owner = found
        lane = run.lane[owner]
        got, expected = self.index_of(a, left, lane), self.index_of(b, right, lane)
        cast = Action(Act.COPY, source=b.dtype, target=a.dtype)
        fine = self.settled.hold(op, self.values[got], prepared(cast, self.values[expected]))
        if fine.all():
            return True
        rest = np.flatnonzero(~fine)
        self.open.append(
            Comparison(node, op, scope, lane[rest], got[rest], expected[rest], cast, self._monotone)
        )
        holds = np.ones(scope.lanes, dtype=np.bool_)
        holds[lane[rest] if not single else slice(None)] = False
        return holds

    def pair_values(self, comparison: Comparison, entries: Array) -> list[tuple[int, int]]:
        """The values that were compared."""
        assert self.values is not None
        got = self.values[comparison.got[entries]]
        expected = prepared(comparison.cast, self.values[comparison.expected[entries]])
        return list(zip(got.tolist(), expected.tolist(), strict=True))

    def _rating(self, value: Value) -> int:
        """How plainly the run made a value: a parameter at the end, one at entry, or a result."""
        if not isinstance(value, View) or arrays.top(value.offset) >= self.addresses.end:
            return 0
        return 1 if arrays.top(value.buffer) == OLD else 2

    # --------------------------------------------- where a false part makes all false

    @contextmanager
    def _apart(self) -> Generator[None]:
        """Evaluate what a comparison that does not hold may make true."""
        before, self._monotone = self._monotone, False
        try:
            yield
        finally:
            self._monotone = before

    def _eval(self, node: ast.Expr, scope: Scope) -> Value:
        if isinstance(node, ast.Paren | ast.BoolOp | ast.Compare | ast.Conditional):
            return super()._eval(node, scope)
        if isinstance(node, ast.Comprehension):
            return super()._eval(node, scope)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return super()._eval(node, scope)
        with self._apart():
            return super()._eval(node, scope)

    def _compare(self, node: ast.Compare, scope: Scope) -> Bool:
        with self._apart():
            operands = [self.eval(operand, scope) for operand in node.operands]
        result: Bool = True
        for op, left, right in zip(node.ops, operands, operands[1:], strict=False):
            if isinstance(result, np.ndarray):  # a chain goes on where it holds so far, as `and`
                live = np.flatnonzero(result)
                inner, parts = scope.narrow(live), (take(left, live), take(right, live))
                result = result.copy()
                result[live] = self._compare_two(node, op, *parts, inner)
            elif result:
                result = self._compare_two(node, op, left, right, scope)
        return result

    def _conditional(self, node: ast.Conditional, scope: Scope) -> Value:
        with self._apart():
            test: Any = self.boolean(node.test, scope, "the condition")
        known = ast.Number(node.test.span, test, "", "")
        return super()._conditional(replace(node, test=known), scope)

    def _call(self, node: ast.Call, scope: Scope) -> Value:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in ("all", "any") and name not in scope.visible():
            return super()._call(node, scope)
        self._around.append(self._monotone)
        try:
            with self._apart():
                return super()._call(node, scope)
        finally:
            self._around.pop()

    def _apply(self, node: ast.Call, function: Function, scope: Scope) -> Value:
        """The arguments are known by now: what the body says stands where the call does."""
        before, self._monotone = self._monotone, self._around[-1]
        try:
            return super()._apply(node, function, scope)
        finally:
            self._monotone = before


class Settled:
    """Which values are known to compare as they should although they differ."""

    def __init__(self) -> None:
        self._pairs: dict[str, set[tuple[int, int]]] = {}

    def add(self, op: str, got: int, expected: int) -> None:
        """Note that `got op expected` holds."""
        self._pairs.setdefault(op, set()).add((got, expected))

    def hold(self, op: str, got: Array, expected: Array) -> Array:
        """Which of the pairs are known to hold."""
        equal = got == expected
        fine = equal if op in ("==", "<=", ">=") else np.zeros_like(equal)
        known = self._pairs.get(op)
        if known:
            for i in np.flatnonzero(~fine).tolist():
                fine[i] = (int(got[i]), int(expected[i])) in known
        return fine
