"""Commands called in this process: fast, and with the streams and exit codes of the real one."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from commlang.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Result:
    code: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """`cli("lint", "a.cl")` runs a command in `folder`, with `stdin` as its input if given."""
    monkeypatch.delenv("COMMLANG_DEBUG", raising=False)

    def call(*argv: str, stdin: str | bytes | None = None) -> Result:
        if stdin is not None:
            data = stdin.encode() if isinstance(stdin, str) else stdin
            monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        capsys.readouterr()
        code = main(argv)
        out, err = capsys.readouterr()
        return Result(code, out, err)

    return call
