"""What `commlang lint` prints, word for word: golden/NAME.cl gives NAME.txt, or NAME.json."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Result

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path for path in GOLDEN.iterdir() if path.suffix in (".txt", ".json"))


@pytest.mark.parametrize("expected", CASES, ids=lambda path: path.name)
def test_lint_prints(
    expected: Path, cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(GOLDEN)
    kind = "json" if expected.suffix == ".json" else "text"
    result = cli("lint", f"{expected.stem}.cl", "--output-format", kind)
    assert result.out == expected.read_text(encoding="utf-8")
    assert result.err == ""
    assert result.code == (0 if expected.stem == "helper" else 1)


def test_every_golden_pattern_is_linted() -> None:
    assert {path.stem for path in GOLDEN.glob("*.cl")} == {path.stem for path in CASES}
