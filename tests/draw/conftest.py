"""Programs of texts and of the library, and commands called in this process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from commlang.cli import main
from commlang.program import build
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.verify import find_pattern

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.program import Program


@dataclass(frozen=True, slots=True)
class Result:
    code: int
    out: str
    err: str


@pytest.fixture
def program() -> Callable[..., Program]:
    """`program(text, 4, n=8)` of the pattern `main` in a text, or of the library by name."""

    def make(text: str, world: int, **values: int) -> Program:
        if text.startswith("pattern"):
            definition = load_module(Source(text, "main.cl")).symbols["main"]
        else:
            definition = find_pattern(text)
        return build(definition, world, values)

    return make


@pytest.fixture
def drawn(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> object:
    """`drawn("a.cl", "--format", "text")` is what `commlang draw` says."""
    monkeypatch.delenv("COMMLANG_DEBUG", raising=False)

    def call(*argv: str) -> Result:
        capsys.readouterr()
        code = main(["draw", *argv])
        out, err = capsys.readouterr()
        return Result(code, out, err)

    return call
