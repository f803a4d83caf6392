"""What times, sizes and numbers of events are called."""

from __future__ import annotations

import pytest

from commlang.draw.words import STEPS, bytes_text, counts_text, time_text
from commlang.report.text import seconds_text


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.0, "0"),
        (2.5e-9, "2.5 ns"),
        (1.2e-5, "12 µs"),
        (0.0123, "12.3 ms"),
        (4321.0, "4321 s"),
        (999.8e-6, "1 ms"),
        (0.9999, "1 s"),
        (999.8, "1000 s"),
    ],
)
def test_times(value: float, told: str) -> None:
    assert time_text(value, "s") == told


def test_what_rounds_to_a_thousand_is_one_of_the_next_unit() -> None:
    assert (time_text(9.996e-4, "s"), seconds_text(9.996e-4)) == ("1 ms", "1 ms")
    assert (time_text(9.994e-4, "s"), seconds_text(9.994e-4)) == ("999 µs", "999 µs")
    assert (time_text(1234.0, "s"), seconds_text(1234.0)) == ("1234 s", "1234 s")


def test_steps() -> None:
    assert time_text(12.0, STEPS) == "step 12"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0, "0 B"),
        (1000, "1000 B"),
        (1536, "1.5 KiB"),
        (4 << 20, "4 MiB"),
        (1023488, "1000 KiB"),
        (5 << 50, "5120 TiB"),
    ],
)
def test_sizes(value: int, told: str) -> None:
    assert bytes_text(value) == told


@pytest.mark.parametrize(
    ("count", "told"), [(383, "383"), (8332, "8.3k"), (12_999, "12k"), (2_500_000, "2.5M")]
)
def test_counts(count: int, told: str) -> None:
    assert counts_text(count) == [f"{count:,} events", f"{count:,}", told]
