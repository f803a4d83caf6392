"""Quantities with units, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from commlang.topology.quantities import Bytes, BytesPerSecond, FlopPerSecond, Seconds, told


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Seconds, "2us", 2e-6),
        (Seconds, " 2 µs ", 2e-6),
        (Seconds, "130ns", 130e-9),
        (Seconds, 0, 0.0),
        (Seconds, "1e-6", 1e-6),
        (Seconds, "1.5 ms", 1.5e-3),
        (BytesPerSecond, "450GB/s", 450e9),
        (BytesPerSecond, "400Gb/s", 50e9),
        (BytesPerSecond, "1GiB/s", 2.0**30),
        (BytesPerSecond, 1_000, 1000.0),
        (Bytes, "80 GB", 80e9),
        (Bytes, "64Ki", None),
        (Bytes, "64KiB", 65536.0),
        (FlopPerSecond, "989TFLOP/s", 989e12),
        (FlopPerSecond, "1.979 PFLOPS", 1.979e15),
        (BytesPerSecond, "450GB", None),
        (BytesPerSecond, "GB/s", None),
        (BytesPerSecond, "450 XB/s", None),
        (Seconds, "2B", None),
        (Seconds, True, None),
        (Seconds, None, None),
        (Seconds, [1], None),
    ],
)
def test_a_quantity_is_a_number_of_its_unit(kind: Any, text: object, value: float | None) -> None:
    reader = TypeAdapter(kind)
    if value is None:
        with pytest.raises(ValidationError, match="is no such quantity; write `"):
            reader.validate_python(text)
    else:
        assert reader.validate_python(text) == pytest.approx(value)


@pytest.mark.parametrize("value", ["-1us", float("nan"), float("inf"), "1e999", 10**400, -1])
def test_what_is_not_finite_or_negative_is_refused(value: object) -> None:
    with pytest.raises(ValidationError, match="must be finite and 0 or more, as `2us` is"):
        TypeAdapter(Seconds).validate_python(value)
    with pytest.raises(ValidationError, match="must be finite and more than 0"):
        TypeAdapter(BytesPerSecond).validate_python(0)


@pytest.mark.parametrize("value", [1e-320, 1e308])
def test_what_would_overflow_the_sums_is_refused(value: float) -> None:
    with pytest.raises(ValidationError, match="is of no machine; write it as `450GB/s`"):
        TypeAdapter(BytesPerSecond).validate_python(value)
    with pytest.raises(ValidationError, match="is of no machine"):
        TypeAdapter(Seconds).validate_python(value)
    assert TypeAdapter(Seconds).validate_python(0) == 0


def test_a_quantity_is_told_with_the_prefix_that_suits_it() -> None:
    assert [told(x, "s") for x in (0, 2e-6, 1.25e-3, 130e-9, 3, 1e-12)] == [
        "0 s", "2 µs", "1.25 ms", "130 ns", "3 s", "0.001 ns",
    ]  # fmt: skip
    assert [told(x, "B/s") for x in (450e9, 1.979e15, 999.96)] == [
        "450 GB/s", "1.979 PB/s", "1000 B/s",
    ]  # fmt: skip
