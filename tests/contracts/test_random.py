"""Random programs: what a proof says is what comes out element by element."""

from __future__ import annotations

import random
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from tests.contracts.proofs import codes
from tests.contracts.reference import NAMES, Element, N, Script, entry, script

SEEDS = st.integers(0, 1 << 32)
WORLDS = st.integers(1, 4)


def _spelled(element: Element, *, old: bool) -> str:
    rank, name, index = element
    tensor = f"old({name})" if old else name
    return f"{tensor}[{index}] @ {rank}"


def _final(chance: random.Random, world: int) -> Element:
    return chance.randrange(world), chance.choice(NAMES), chance.randrange(N)


def _linear(made: Script, element: Element) -> tuple[dict[Element, Fraction], Fraction]:
    """A program of sums as a linear function: from what it makes of the unit vectors."""
    zero = dict.fromkeys(entry(made.world, random.Random(0)), Fraction(0))
    constant = made.run(zero)[element]
    factors = {e: made.run({**zero, e: Fraction(1)})[element] - constant for e in zero}
    return {e: f for e, f in factors.items() if f}, constant


def _sum(factors: dict[Element, Fraction], constant: Fraction) -> str:
    terms = [
        f"({_spelled(e, old=True)}) * ({f.numerator} / {f.denominator})" for e, f in factors.items()
    ]
    return " + ".join([*terms, f"{constant.numerator} / {constant.denominator}"])


@given(SEEDS, WORLDS)
def test_a_linear_program_is_the_sum_that_it_is(seed: int, world: int) -> None:
    made, chance = script(world, seed, ("sum", "avg")), random.Random(seed)
    element = _final(chance, world)
    factors, constant = _linear(made, element)
    if not factors:
        factors = {_final(chance, world): Fraction(0)}
    right = made.text(f"{_spelled(element, old=False)} == {_sum(factors, constant)}")
    assert codes(right, world) == [], right
    wrong = {**factors, chance.choice(list(factors)): Fraction(7, 5)}
    text = made.text(f"{_spelled(element, old=False)} == {_sum(wrong, constant)}")
    assert codes(text, world) == ["CL240"], text


def _maxima(made: Script, element: Element) -> set[Element]:
    """A program of maxima as a set: what is seen at the element when it is the largest."""
    zero = dict.fromkeys(entry(made.world, random.Random(0)), Fraction(0))
    return {e for e in zero if made.run({**zero, e: Fraction(1)})[element]}


@given(SEEDS, WORLDS)
def test_a_program_of_maxima_is_the_set_that_it_is(seed: int, world: int) -> None:
    """Also where a contribution comes twice, which changes no maximum."""
    made, chance = script(world, seed, ("max",), factors=False), random.Random(seed)
    element = _final(chance, world)
    found = sorted(_maxima(made, element))
    listed = [f"old({n})[{i}:{i + 1}] @ {r}" for r, n, i in found]
    place = f"{element[1]}[{element[2]}:{element[2] + 1}] @ {element[0]}"
    right = made.text(f"({place}) == max([{', '.join(f'({e})' for e in listed)}])")
    assert codes(right, world) == [], right
    below = made.text(f"({listed[0]}) <= ({place})")
    assert codes(below, world) == [], below
    other = _final(chance, world)
    if other in found:
        found.remove(other)
    else:
        found.append(other)
    listed = [f"(old({n})[{i}:{i + 1}] @ {r})" for r, n, i in found]
    text = made.text(f"({place}) == max([{', '.join(listed)}])") if listed else right
    assert codes(text, world) == (["CL240"] if listed else []), text


@given(SEEDS, WORLDS)
def test_two_elements_agree_where_all_numbers_say_so(seed: int, world: int) -> None:
    made, chance = script(world, seed, ("sum", "avg", "max", "min")), random.Random(seed)
    one, other = _final(chance, world), _final(chance, world)
    ends = [made.run(entry(world, random.Random(trial))) for trial in range(12)]
    agree = all(end[one] == end[other] for end in ends)
    text = made.text(f"({_spelled(one, old=False)}) == ({_spelled(other, old=False)})")
    found = codes(text, world)
    assert found in (([], ["CL241"]) if agree else (["CL240"], ["CL241"])), text


@given(SEEDS, WORLDS)
def test_whole_tensors_are_compared_element_by_element(seed: int, world: int) -> None:
    made, chance = script(world, seed, ("sum",)), random.Random(seed)
    i, j, n = chance.randrange(3), chance.randrange(3), chance.randrange(1, 4)
    (r, a, _), (s, b, _) = _final(chance, world), _final(chance, world)
    end = made.run(entry(world, random.Random(seed)))
    old = entry(world, random.Random(seed))
    agree = all(end[r, a, i + k] == old[s, b, j + k] for k in range(n))
    text = made.text(f"({a}[{i}:{i + n}] @ {r}) == (old({b})[{j}:{j + n}] @ {s})")
    assert codes(text, world) == ([] if agree else ["CL240"]), text
