"""What durations and sizes are called in reports."""

from __future__ import annotations

import pytest

from commlang.report.text import bytes_text, seconds_text


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.0, "0 ns"),
        (12e-9, "12 ns"),
        (999.8e-9, "1 µs"),
        (1.25e-3, "1.25 ms"),
        (999.4e-6, "999 µs"),
        (999.8e-6, "1 ms"),
        (0.99996, "1 s"),
        (4321.0, "4321 s"),
        (1.5e37, "1.5e+37 s"),
    ],
)
def test_a_duration_rounds_into_the_next_unit(value: float, told: str) -> None:
    assert seconds_text(value) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [(1000, "1000 B"), (1536, "1.5 KiB"), (1023488, "999.5 KiB"), (1010 << 20, "1010 MiB")],
)
def test_a_size_is_told_without_an_exponent(value: int, told: str) -> None:
    assert bytes_text(value) == told
