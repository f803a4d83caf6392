"""Random programs as text, and what they do to every element, worked out one by one.

Each statement is written down and at once carried out on all ranks, on plain Python numbers.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from fractions import Fraction

N = 6
NAMES = ("x", "y", "z")
HEAD = "pattern main(x: float64[6], y: float64[6], z: float64[6]):\n"
_FOLD = {
    "sum": lambda values: sum(values),
    "avg": lambda values: sum(values) / len(values),
    "max": lambda values: max(values),
    "min": lambda values: min(values),
}

Element = tuple[int, str, int]
"""Rank, tensor, index."""


@dataclass
class Script:
    """The statements of a pattern, in the order in which they run."""

    world: int
    lines: list[str] = field(default_factory=list[str])
    steps: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])

    def text(self, ensure: str) -> str:
        """The pattern with a contract."""
        body = [f"ensure {ensure}", *self.lines]
        return HEAD + "".join(f"    {line}\n" for line in body)

    def run(self, data: dict[Element, Fraction]) -> dict[Element, Fraction]:
        """What the elements hold at the end."""
        values = dict(data)
        for step in self.steps:
            _STEPS[str(step[0])](values, self.world, *step[1:])
        return values


def entry(world: int, chance: random.Random) -> dict[Element, Fraction]:
    """Numbers for all elements at entry."""
    return {
        (r, n, i): Fraction(chance.randrange(1, 1 << 30))
        for r in range(world)
        for n in NAMES
        for i in range(N)
    }


def script(world: int, seed: int, ops: tuple[str, ...], *, factors: bool = True) -> Script:
    """A random program; `ops` are those that it may reduce with."""
    chance = random.Random(seed)
    made = Script(world)
    for _ in range(chance.randrange(1, 8)):
        _add(made, chance, ops, factors)
    return made


def _slices(chance: random.Random, parts: int = 1) -> tuple[int, int, int]:
    """Two places and a length that fit in a tensor; the length divides into parts."""
    length = parts * chance.randrange(1, N // parts + 1)
    return chance.randrange(N - length + 1), chance.randrange(N - length + 1), length


def _add(made: Script, chance: random.Random, ops: tuple[str, ...], factors: bool) -> None:
    kinds = ["copy", "send", "all_reduce", "broadcast", "all_gather", "all_to_all", "scatter"]
    kind = chance.choice([*kinds, "copy", "send", "scale", "fill"] if factors else kinds)
    a, b = chance.sample(NAMES, 2)
    i, j, n = _slices(chance)
    op = chance.choice(ops)
    local = [o for o in ops if o != "avg"]
    fold = chance.choice([None, *local])
    suffix = f", op={fold}" if fold else ""
    rank, other = chance.randrange(made.world), chance.randrange(made.world)
    match kind:
        case "copy":
            made.lines += [
                f"if rank == {rank}:",
                f"    {a}[{i}:{i + n}] -> {b}[{j}:{j + n}]{suffix}",
            ]
            made.steps.append(("move", rank, a, i, rank, b, j, n, fold))
        case "send" if rank != other:
            made.lines.append(f"{a}[{i}:{i + n}] @ {rank} -> {b}[{j}:{j + n}] @ {other}{suffix}")
            made.steps.append(("move", rank, a, i, other, b, j, n, fold))
        case "scale":
            factor = chance.choice(("2", "-1", "1 / 3"))
            made.lines.append(f"scale({a}[{i}:{i + n}], {factor})")
            made.steps.append(("scale", a, i, n, Fraction(factor.replace(" ", ""))))
        case "fill":
            made.lines += [f"if rank != {rank}:", f"    fill({a}[{i}:{i + n}], {j})"]
            made.steps.append(("fill", rank, a, i, n, Fraction(j)))
        case "all_reduce":
            made.lines.append(f"all_reduce({a}[{i}:{i + n}], op={op})")
            made.steps.append(("all_reduce", a, i, n, op))
        case "broadcast":
            made.lines.append(f"broadcast({a}[{i}:{i + n}], src={rank})")
            made.steps.append(("broadcast", rank, a, i, n))
        case "all_gather" if made.world <= N:
            j, _, n = _slices(chance, made.world)
            part = n // made.world
            i = chance.randrange(N - part + 1)
            made.lines.append(f"all_gather_into_tensor({b}[{j}:{j + n}], {a}[{i}:{i + part}])")
            made.steps.append(("all_gather", a, i, b, j, part))
        case "scatter" if made.world <= N:
            i, _, n = _slices(chance, made.world)
            part = n // made.world
            j = chance.randrange(N - part + 1)
            made.lines.append(
                f"reduce_scatter_tensor({b}[{j}:{j + part}], {a}[{i}:{i + n}], op={op})"
            )
            made.steps.append(("scatter", a, i, b, j, part, op))
        case "all_to_all" if made.world <= N:
            i, j, n = _slices(chance, made.world)
            made.lines.append(f"all_to_all_single({b}[{j}:{j + n}], {a}[{i}:{i + n}])")
            made.steps.append(("all_to_all", a, i, b, j, n // made.world))
        case _:
            made.lines.append("barrier()")


def _move(v, _, source, a, i, target, b, j, n, op):
    for k in range(n):
        new = v[source, a, i + k]
        old = v[target, b, j + k]
        v[target, b, j + k] = new if op is None else _FOLD[op]([old, new])


def _scale(v, world, a, i, n, factor):
    for r in range(world):
        for k in range(n):
            v[r, a, i + k] *= factor


def _fill(v, world, but, a, i, n, value):
    for r in range(world):
        for k in range(n):
            if r != but:
                v[r, a, i + k] = value


def _all_reduce(v, world, a, i, n, op):
    for k in range(n):
        total = _FOLD[op]([v[r, a, i + k] for r in range(world)])
        for r in range(world):
            v[r, a, i + k] = total


def _broadcast(v, world, root, a, i, n):
    for r in range(world):
        for k in range(n):
            v[r, a, i + k] = v[root, a, i + k]


def _all_gather(v, world, a, i, b, j, part):
    for r in range(world):
        for s in range(world):
            for k in range(part):
                v[r, b, j + s * part + k] = v[s, a, i + k]


def _scatter(v, world, a, i, b, j, part, op):
    for r in range(world):
        for k in range(part):
            v[r, b, j + k] = _FOLD[op]([v[s, a, i + r * part + k] for s in range(world)])


def _all_to_all(v, world, a, i, b, j, part):
    for r in range(world):
        for s in range(world):
            for k in range(part):
                v[r, b, j + s * part + k] = v[s, a, i + r * part + k]


_STEPS = {
    "move": _move,
    "scale": _scale,
    "fill": _fill,
    "all_reduce": _all_reduce,
    "broadcast": _broadcast,
    "all_gather": _all_gather,
    "scatter": _scatter,
    "all_to_all": _all_to_all,
}
