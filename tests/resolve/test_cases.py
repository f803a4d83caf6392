"""Statements and their findings: `cases/*.txt` holds statements, then `=> finding` lines.

Each finding is `line:column CODE message | help`, counted from the first statement; the pattern
around them is `HEAD` in `conftest.py`. Statements without a `=>` line must have no finding.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).parent / "cases"


def _cases() -> list[object]:
    cases: list[object] = []
    for path in sorted(FOLDER.glob("*.txt")):
        for number, block in enumerate(path.read_text("utf-8").strip().split("\n\n"), start=1):
            lines = block.split("\n")
            text = "\n".join(line for line in lines if not line.startswith("=> "))
            expected = [line[3:] for line in lines if line.startswith("=> ")]
            cases.append(pytest.param(text, expected, id=f"{path.stem}-{number}"))
    return cases


@pytest.mark.parametrize(("text", "expected"), _cases())
def test_statements_give_exactly_these_findings(
    text: str, expected: list[str], body: Callable[[str], list[str]]
) -> None:
    assert body(text) == expected


def test_every_file_of_cases_but_the_clean_one_has_a_finding_in_each() -> None:
    for path in FOLDER.glob("*.txt"):
        blocks = path.read_text("utf-8").strip().split("\n\n")
        faulty = sum("=> " in block for block in blocks)
        assert faulty == (0 if path.stem == "clean" else len(blocks)), path.name
