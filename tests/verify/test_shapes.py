"""Sets of worlds in words: as they are, and not as they might go on."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlang.verify.shapes import _classes, listed, shape

ALL = range(2, 65)


@pytest.mark.parametrize(
    ("some", "text"),
    [
        (ALL, "every world checked"),
        ([5], "world 5"),
        ([5, 6], "worlds 5, 6"),
        (range(3, 65, 2), "odd worlds from 3"),
        (range(5, 65), "every world from 5"),
        (range(5, 10), "every world from 5 to 9"),
        (range(2, 10), "every world from 2 to 9"),
        (range(2, 65, 2), "even worlds"),
        (range(6, 65, 2), "even worlds from 6"),
        (range(3, 65, 3), "multiples of 3"),
        (range(6, 41, 3), "multiples of 3 from 6 to 39"),
        ([2, 4, 8, 16, 32, 64], "powers of two from 2"),
        ([w for w in ALL if w & (w - 1)], "all but powers of two"),
        ([w for w in ALL if w % 4], "all but multiples of 4 from 2"),
        ([2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61], "primes"),
        (range(6, 65, 4), "worlds of the form 4 k + 2 from 6"),
        ([3, 7, 8, 9, 20, 21], "worlds 3, 7..9, 20, 21"),
    ],
)
def test_shapes(some: range | list[int], text: str) -> None:
    assert shape(list(some), ALL) == text


def test_worlds_that_were_not_looked_at_do_not_count() -> None:
    assert shape([6, 12, 18], [6, 7, 12, 13, 18]) == "even worlds from 6"
    assert shape([4, 8, 16], [2, 4, 8, 16]) == "every world from 4"


def test_lists() -> None:
    assert listed([7]) == "7"
    assert listed([2, 5]) == "2, 5"
    assert listed([4, 8, 16]) == "4, 8, 16"
    assert listed(range(2, 65)) == "2..64"
    assert listed(range(2, 65, 2)) == "2..64:2"
    assert listed([2, 3, 4, 9]) == "2..4, 9"
    assert listed([w * w for w in range(1, 20)]) == "1, 4, 9, 16, 25, 36, 49, 64, … (19 worlds)"


def members(text: str, checked: list[int]) -> list[int]:
    """The worlds that a text names."""
    if text == "every world checked":
        return checked
    if match := re.fullmatch(r"worlds? (\d.*)", text):
        bounds = [part.split("..") for part in match[1].split(", ") if not part.startswith("…")]
        return [w for low, *high in bounds for w in range(int(low), int((high or [low])[0]) + 1)]
    match = re.fullmatch(r"(.+?)(?: from (\d+))?(?: to (\d+))?", text)
    assert match is not None
    member = dict(_classes())[match[1]]
    low, high = int(match[2] or 1), int(match[3] or checked[-1])
    return [w for w in checked if member(w) and low <= w <= high]


@given(st.sets(st.integers(1, 30), min_size=1, max_size=14), st.sets(st.integers(1, 30)))
def test_a_text_names_just_these(some: set[int], others: set[int]) -> None:
    chosen, checked = sorted(some), sorted(some | others)
    text = shape(chosen, checked)
    if "…" not in text and ":" not in text:
        assert members(text, checked) == chosen
