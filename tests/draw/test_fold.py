"""Which ranks of many are shown, and what is said of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlang.draw.fold import FEW, Fold, Gap, fold

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.program import Program

RELATIVE = "the same statements with the same relative peers"


def test_few_ranks_are_all_shown(program: Callable[..., Program]) -> None:
    assert fold(program("ring_all_reduce", FEW)) == Fold(tuple(range(FEW)), ())


def test_a_ring_has_one_kind_of_rank(program: Callable[..., Program]) -> None:
    gap = Gap(2, 62, 61, "61 ranks, 2 to 62: like rank 0")
    assert fold(program("ring_all_reduce", 64)) == Fold((0, 1, 63), (gap,), RELATIVE)


def test_a_root_is_of_its_own_kind_and_the_leaves_of_one(program: Callable[..., Program]) -> None:
    found = fold(program("star_all_reduce", 20))
    gap = Gap(2, 18, 17, "17 ranks, 2 to 18: like rank 1")
    assert found == Fold((0, 1, 19), (gap,), "the same statements with the same peers")


def test_a_tree_shows_a_rank_of_each_height(program: Callable[..., Program]) -> None:
    found = fold(program("tree_all_reduce", 256))
    assert found.shown == (0, 1, 2, 4, 8, 16, 32, 64, 128, 255)
    assert found.gaps[1].words == "3 ranks, 5 to 7: like rank 4"
    assert sum(gap.count for gap in found.gaps) + len(found.shown) == 256


def test_a_gap_says_how_many_of_each_kind_it_hides(program: Callable[..., Program]) -> None:
    text = """\
pattern main(x: float32[n], n = 8):
    if rank % 3 == 0:
        fill(x, 1)
    all_reduce(x)
"""
    found = fold(program(text, 30))
    assert found.gaps == (Gap(2, 28, 27, "27 ranks, 2 to 28: 9 like rank 0, 18 like rank 1"),)


@pytest.mark.parametrize("wanted", [(3,), (7, 3, 3), tuple(range(64))])
def test_ranks_that_are_asked_for_are_shown(
    program: Callable[..., Program], wanted: tuple[int, ...]
) -> None:
    assert fold(program("ring_all_reduce", 64), wanted) == Fold(tuple(sorted(set(wanted))), ())


def test_of_too_many_ranks_asked_for_some_are_shown(program: Callable[..., Program]) -> None:
    found = fold(program("ring_all_reduce", 80), range(5, 75), needed=[7, 79])
    assert found.shown == (5, 6, 7, 74)
    assert [gap.count for gap in found.gaps] == [66]


def test_ranks_of_a_deadlock_are_shown(program: Callable[..., Program]) -> None:
    assert fold(program("ring_all_reduce", 64), needed=[30, 31]).shown == (0, 1, 30, 31, 63)
