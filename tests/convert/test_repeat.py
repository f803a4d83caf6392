"""Folding keeps every step in its place, and finds the loops that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from commlang.convert.actions import Act
from commlang.convert.repeat import Item, Leaf, Loop, fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def unfold(items: Iterable[Item], base: int = 0) -> Iterator[Leaf]:
    """The steps of items whose micro-batches count from `base`."""
    for item in items:
        if isinstance(item, Leaf):
            yield item.relative(-base)
            continue
        for turn in range(item.rounds):
            yield from unfold(item.body, base + item.batch + turn * item.step)


def steps(text: str) -> list[Leaf]:
    """`F0 F1 B0`: steps of one stage."""
    return [Leaf(Act(word[0]), 0, int(word[1:])) for word in text.split()]


LEAVES = st.builds(
    Leaf, st.sampled_from([Act.FORWARD, Act.BACKWARD]), st.integers(0, 1), st.integers(0, 3)
)
RUNS = st.builds(
    lambda body, rounds, step: [leaf.relative(-k * step) for k in range(rounds) for leaf in body],
    st.lists(LEAVES, min_size=1, max_size=4),
    st.integers(1, 6),
    st.integers(-2, 2),
)
PAUSES = st.just([Leaf(Act.UNSHARD, 1, None)])


@given(st.lists(RUNS | PAUSES, max_size=6))
def test_unfolding_gives_the_same_steps(runs: list[list[Leaf]]) -> None:
    leaves = [leaf for run in runs for leaf in run]
    assert list(unfold(fold(leaves))) == leaves


def test_one_forward_one_backward_is_a_loop() -> None:
    (f0, loop, *rest) = fold(steps("F0 F1 B0 F2 B1 F3 B2 B3"))
    assert f0 == Leaf(Act.FORWARD, 0, 0)
    assert isinstance(loop, Loop)
    assert (loop.rounds, loop.step, loop.batch, len(loop.body)) == (3, 1, 1, 2)
    assert rest == steps("B3")


def test_loops_of_loops() -> None:
    words = [f"{act}{group * 3 + k}" for group in range(4) for act in "FB" for k in range(3)]
    (outer,) = fold(steps(" ".join(words)))
    assert isinstance(outer, Loop)
    assert (outer.rounds, outer.step, outer.batch) == (4, 3, 0)
    assert [(type(item), item.batch) for item in outer.body] == [(Loop, 0), (Loop, 0)]


def test_what_happens_twice_stays_as_it_is() -> None:
    assert fold(steps("F0 B0 F1 B1")) == steps("F0 B0 F1 B1")
