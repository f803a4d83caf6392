"""Every message on contracts, with its places, notes and help."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checks.findings import cases, told


@pytest.mark.parametrize(("text", "expected"), cases(Path(__file__).parent / "cases"))
def test_a_contract_is_judged_exactly_so(text: str, expected: list[str]) -> None:
    assert told(text) == expected
