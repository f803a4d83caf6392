"""Do all sends and recvs of a pattern meet in every world, whatever its parameters?

To check a world is to count, channel by channel: as many sends from rank a to rank b on a tag as
recvs of b from a. Here the same is shown for all worlds at once, from the text.

The argument. A *context* is one way in which a line can be reached: the iterations of the loops and
the outcomes of the conditions around it, as long as these do not depend on the rank. So all ranks
go through the same contexts. In each, a line is run by the ranks that its other conditions let
through, its guard, and adds to the channels one message for each of them:

- `send(dst=(rank + c) % world)`, run by all, makes the messages (r, r + c); `recv(src=(rank - c) %
  world)` asks for (r - c, r), which are the same: adding c modulo the world permutes the ranks.
- Under `low <= rank < high`, `send(dst=rank + c)` makes (r, r + c) for these r. The recv that asks
  for them is `recv(src=rank - c)` under `low + c <= rank < high + c`. The bounds 0 and `world` need
  not be written, and a peer that is no rank is refused (CL116), so that nothing is said of worlds
  in which there is one. With `% world`, or counting from another rank than 0, it must be sure from
  the bounds that nothing wraps round.
- The same goes for `rank % m == a` and `rank % m == (a + c) % m`.
- `rank ^ k` and `k - rank` are their own inverse, so a send and a recv with that peer, run by all,
  ask for each other.
- `x @ a -> y @ b` is a send on a and a recv on b. All ranks run it in the same contexts, with the
  same a and b, so both are run.

If both arms of a condition on the rank do the same (in another order, say), it is no condition.
Each kind of line is then a formula of values that do not depend on the rank. If for each formula
there are as many lines that send as lines that receive, in equal contexts (loops over equal values
count as one), the messages sent and asked for are the same in every world in which the pattern can
be expanded at all. Values are equal if they are made in the same way (`linear`); whatever has no
form here is not proven. Only pairing is: that the messages fit, in size and order, is for checks of
single worlds to say.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from commlang.expand.binding import is_tensor
from commlang.operations import OPERATIONS, Kind, Operation
from commlang.records import record
from commlang.syntax import ast
from commlang.verify.formulas import (
    Env,
    Formula,
    Formulas,
    LetFunction,
    Ranks,
    TooLong,
    key_of,
)
from commlang.verify.linear import (
    ALL,
    ONE,
    RANK,
    SIZE,
    ZERO,
    Flipped,
    Interval,
    Key,
    Linear,
    Residue,
    Wrapped,
    atom,
    both,
    others,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlang.resolve.modules import Definition
    from commlang.verify.linear import Guard

BUDGET = 50_000
"""Most statements and expressions that are looked at; a call counts each time."""

MAX_DEPTH = 30
"""Deepest nesting of pattern calls that is followed."""


class Matching(StrEnum):
    """What can be said of the messages of a pattern in all worlds."""

    PROVEN = "proven"
    OPEN = "open"
    """Nothing: the form of the peers does not tell."""
    NO_MESSAGES = "no messages"


@record
class _Line:
    """A send, a recv or (with the sender as `peer`, the receiver as `to`) a transfer."""

    kind: Kind | None
    peer: Linear | Wrapped | Flipped
    tag: Key
    to: Key = ()
    guard: Guard = ALL
    context: tuple[Key, ...] = ()


class _OpenError(Exception):
    """A message is in no form of which something is known."""


def matching(definition: Definition) -> Matching:
    """Whether all sends and recvs of a pattern meet in every world that it can be expanded for."""
    walk = _Walk()
    try:
        env = walk.parameters(definition)
        lines = walk.block(definition, definition.node.body, env, 0)
        if not lines:
            return Matching.NO_MESSAGES
        sent = Counter(_channels(line) for line in lines if line.kind is Kind.SEND)
        asked = Counter(_channels(line) for line in lines if line.kind is Kind.RECV)
        for line in lines:
            if line.kind is None and line.guard != ALL:
                return Matching.OPEN
    except (_OpenError, TooLong, RecursionError):
        return Matching.OPEN
    return Matching.PROVEN if sent == asked else Matching.OPEN


# ------------------------------------------------------------------- formulas


def _channels(line: _Line) -> Key:
    """The messages of a send or recv in one context, as a formula that is the same for both."""
    sends = line.kind is Kind.SEND
    found: Key | None = None
    match line.peer, line.guard:
        case Flipped(mask), guard if guard == ALL:
            found = ("flipped", mask)
        case Wrapped(inner, exact=True), guard if guard == ALL and inner.slope == -1:
            found = ("mirrored", "wrapped", inner.offset().residue().key)
        case Linear(-1) as inner, guard if guard == ALL:
            found = ("mirrored", inner.offset().key)
        case Wrapped(inner, exact=True), guard if guard == ALL and inner.slope == 1:
            step = inner.offset().residue()
            found = ("turned", (step if sends else ZERO.minus(step)).key)
        case Wrapped(inner, exact=True), Interval() as guard if inner.slope == 1:
            step = inner.offset().residue()
            if _stays(guard, step):
                found = _shifted(guard, step, sends)
        case Linear(1) as inner, Interval(shift) as guard if shift == ZERO:
            found = _shifted(guard, inner.offset(), sends)
        case Linear(0) as peer, Interval(shift, low, high) as guard if shift == ZERO:
            if high == low.plus(ONE):
                found = _shifted(guard, peer.minus(low), sends)
        case Linear(1, (), step), Residue(modulus, value):
            own = (modulus, value, step)
            found = ("every", *(own if sends else (modulus, (value + step) % modulus, -step)))
        case _:
            pass
    if found is None:
        raise _OpenError
    return (found, line.tag, line.context)


def _shifted(guard: Interval, step: Linear, sends: bool) -> Key:
    """Messages over a distance, by the interval of the ranks that send them."""
    if sends:
        return ("shifted", guard.shift.key, step.key, guard.low.key, guard.high.key)
    low, high = guard.low.plus(step), guard.high.plus(step)
    return ("shifted", guard.shift.key, ZERO.minus(step).key, low.key, high.key)


def _stays(guard: Interval, step: Linear) -> bool:
    """Whether an interval, and what is a step on from it, surely lies within the world."""
    ends = (guard.low, SIZE.minus(guard.high))
    after = (guard.low.plus(step), SIZE.minus(guard.high.plus(step)))
    return all(value.at_least_zero() for value in (*ends, *after))


# ------------------------------------------------------------------ statements


class _Walk:
    """Goes through the statements of a pattern, and of those that it calls, as all ranks do."""

    def __init__(self) -> None:
        self.formulas = Formulas(BUDGET)
        self.calls = 0

    def parameters(self, definition: Definition) -> Env:
        """What a pattern knows at its start. Parameters are the same on every rank."""
        env: dict[str, Formula] = {"rank": RANK, "world": SIZE, "ranks": Ranks()}
        for param in definition.node.params:
            name = param.target.id
            known = not is_tensor(param)
            if known and param.default is not None and not (param.type and param.type.shape):
                known = key_of(self.formulas.of(param.default, env)) is not None
            env[name] = atom(("parameter", name)) if known else None
        return env

    def block(
        self, definition: Definition, body: tuple[ast.Stmt, ...], env: Env, loops: int
    ) -> list[_Line]:
        """The messages of some statements; raises _OpenError for those that have no form."""
        names = dict(env)
        found: list[_Line] = []
        for statement in body:
            self.formulas.spend()
            found += self._statement(definition, statement, names, loops)
        return found

    def _statement(
        self, definition: Definition, node: ast.Stmt, names: dict[str, Formula], loops: int
    ) -> list[_Line]:
        match node:
            case ast.Let(_, target, value):
                names[target.id] = self.formulas.of(value, names)
            case ast.LetFunction(_, target):
                names[target.id] = LetFunction(node, dict(names))
            case ast.Temp(_, target) | ast.Group(_, target):
                names[target.id] = None
            case ast.Mesh(_, axes):
                names |= dict.fromkeys((axis.name for axis in axes), None)
            case ast.Sequence(_, body):
                return self.block(definition, body, names, loops)
            case ast.Parallel(_, _, None, body):
                return self.block(definition, body, names, loops)
            case ast.For(_, targets, iterable, body):
                return self._loop(definition, targets, iterable, body, names, loops)
            case ast.Parallel(_, targets, iterable, body) if iterable is not None:
                return self._loop(definition, targets, iterable, body, names, loops)
            case ast.If():
                return self._if(definition, node, names, loops)
            case ast.CallStatement(_, call) | ast.Async(_, _, ast.CallStatement(_, call)):
                return self._call(definition, call, names, loops)
            case (ast.Transfer() as arrow) | ast.Async(_, _, ast.Transfer() as arrow):
                return self._transfer(arrow, names)
            case _:
                pass
        return []

    def _loop(
        self,
        definition: Definition,
        targets: tuple[ast.Target, ...],
        iterable: ast.Expr,
        body: tuple[ast.Stmt, ...],
        names: Env,
        loops: int,
    ) -> list[_Line]:
        key, items = self._iterable(iterable, names, (loops,))
        if len(items) != len(targets):
            items = [atom(("item", loops, at)) if key else None for at in range(len(targets))]
        inner = {**names, **{t.id: item for t, item in zip(targets, items, strict=True)}}
        lines = self.block(definition, body, inner, loops + 1)
        if lines and key is None:
            raise _OpenError
        return [replace(line, context=(("for", key), *line.context)) for line in lines]

    def _iterable(self, node: ast.Expr, env: Env, at: Key) -> tuple[Key | None, list[Formula]]:
        """Names what a loop runs over, if that is free, and says what its variables are."""
        match node:
            case ast.Call(_, ast.Attr(_, _, "chunks"), (count,), ()):
                key = self.formulas.key(count, env)
                return None if key is None else ("chunks", key), [None]
            case ast.Call(_, ast.Name(_, "enumerate" as name), (inner,), ()) if name not in env:
                key, items = self._iterable(inner, env, (*at, 1))
                return None if key is None else (name, key), [atom(("item", *at)), *items]
            case _:
                key = self.formulas.key(node, env)
                return key, [None if key is None else atom(("item", *at))]

    def _if(self, definition: Definition, node: ast.If, names: Env, loops: int) -> list[_Line]:
        arms = [self.block(definition, b.body, names, loops) for b in node.branches]
        tests = [
            self.formulas.of(b.condition, names) for b in node.branches if b.condition is not None
        ]
        if len(tests) == len(arms):
            arms.append([])
        if not any(arms):
            return []
        keys = tuple(key_of(test) for test in tests)
        if None not in keys:
            return [
                replace(line, context=(("if", keys, number), *line.context))
                for number, lines in enumerate(arms)
                for line in lines
            ]
        if all(Counter(lines) == Counter(arms[0]) for lines in arms):
            return arms[0]
        return [
            line
            for arm, guard in zip(arms, _guards(tests), strict=True)
            for line in _under(guard, arm)
        ]

    def _call(self, definition: Definition, call: ast.Call, names: Env, loops: int) -> list[_Line]:
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        called = definition.module.symbols.get(name) if name not in names else None
        if called is not None:
            if isinstance(called.node, ast.Extern):
                return []
            return self._pattern(called, call, names, loops)
        operation = OPERATIONS.get(name) if name not in names else None
        if operation is not None and operation.kind.is_message:
            return [self._message(operation, call, names)]
        return []

    def _pattern(self, called: Definition, call: ast.Call, names: Env, loops: int) -> list[_Line]:
        if self.calls >= MAX_DEPTH:
            raise TooLong
        params = called.node.params
        given = dict(zip((p.target.id for p in params), call.args, strict=False))
        given |= {keyword.name: keyword.value for keyword in call.keywords}
        bound = {name for p in params if p.type for name in _binds(p.type)}
        env: dict[str, Formula] = {"rank": RANK, "world": SIZE, "ranks": Ranks()}
        env |= dict.fromkeys(bound)  # also where no parameter has the name
        for param in params:
            name = param.target.id
            value: Formula = None
            if name in given and not is_tensor(param):
                value = self.formulas.of(given[name], names)
            elif name not in bound and param.default is not None:
                value = self.formulas.of(param.default, env)
            env[name] = value if key_of(value) is not None else None
        self.calls += 1
        lines = self.block(called, called.node.body, env, loops)
        self.calls -= 1
        if lines and "group" in given:
            raise _OpenError
        return lines

    def _message(self, operation: Operation, call: ast.Call, names: Env) -> _Line:
        given = dict(zip((a.name for a in operation.arguments), call.args, strict=False))
        given |= {keyword.name: keyword.value for keyword in call.keywords}
        ends = [given[a.name] for a in operation.arguments if a.type == "rank" and a.name in given]
        if "group" in given or len(ends) != 1:
            raise _OpenError
        tag = self.formulas.key(given["tag"], names) if "tag" in given else ZERO.key
        peer = self.formulas.of(ends[0], names)
        if tag is None or not isinstance(peer, Linear | Wrapped | Flipped):
            raise _OpenError
        return _Line(operation.kind, peer, tag)

    def _transfer(self, node: ast.Transfer, names: Env) -> list[_Line]:
        if node.source.rank is None or node.target.rank is None:
            return []
        start = self.formulas.of(node.source.rank, names)
        end = self.formulas.key(node.target.rank, names)
        tags = [self.formulas.key(k.value, names) for k in node.keywords if k.name == "tag"]
        tag = tags[0] if tags else ZERO.key
        if not isinstance(start, Linear) or not start.free or end is None or tag is None:
            raise _OpenError
        return [_Line(None, start, tag, end)]


def _binds(kind: ast.TypeRef) -> Iterator[str]:
    """The names that a given tensor or table binds: of its sizes, and of its dtype."""
    yield kind.name
    yield from (d.id for d in kind.shape or () if isinstance(d, ast.Name))


def _guards(tests: Sequence[Formula]) -> Iterator[Guard | None]:
    """The ranks that come to each arm of an `if`, its `else` included; None where no form fits."""
    left: Guard | None = ALL
    for test in tests:
        guard = test if isinstance(test, Interval | Residue) else None
        yield None if left is None or guard is None else both(left, guard)
        rest = None if guard is None else others(guard)
        left = None if left is None or rest is None else both(left, rest)
    yield left


def _under(guard: Guard | None, lines: list[_Line]) -> list[_Line]:
    """The same lines, run by the ranks of a guard only."""
    found: list[_Line] = []
    for line in lines:
        narrowed = None if guard is None else both(line.guard, guard)
        if narrowed is None:
            raise _OpenError
        found.append(replace(line, guard=narrowed))
    return found
