"""The stored parser table is the grammar's own."""

from __future__ import annotations

import pickle
from random import Random
from typing import TYPE_CHECKING

import pytest

from commlang import resources
from commlang.source import Source
from commlang.syntax import hints, parser, table
from tests.syntax.dump import dump
from tests.syntax.generate import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _fresh_parser() -> Iterator[None]:
    parser._parser.cache_clear()
    yield
    parser._parser.cache_clear()


def _dumps() -> list[str]:
    return [dump(parser.parse(Source(Writer(Random(seed)).module()))) for seed in range(30)]


def test_the_stored_table_is_current() -> None:
    stored = pickle.loads(resources.parser_table_path().read_bytes())
    assert stored["key"] == pickle.loads(parser.build_table())["key"], (
        "the grammar has changed: run python -m commlang.syntax.table"
    )


@pytest.mark.parametrize("content", [None, b"", b"noise", pickle.dumps({"key": ("0", "0")})])
def test_without_a_usable_table_the_grammar_parses_the_same(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_table = _dumps()
    path = tmp_path / "commlang.table"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setattr(resources, "parser_table_path", lambda: path)
    parser._parser.cache_clear()
    assert _dumps() == with_table


def test_the_table_command_writes_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "commlang.table"
    monkeypatch.setattr(resources, "parser_table_path", lambda: path)
    table.main()
    assert capsys.readouterr().out == f"wrote {path} ({path.stat().st_size} bytes)\n"
    assert _dumps()[0].startswith("Module(")


def test_the_terminals_that_messages_name_are_the_grammars() -> None:
    names = {terminal.name for terminal in parser._parser().terminals}
    assert not hints._WORDS.keys() - names - {"$END"}
    assert not (hints._OPERATORS | hints._VALUE) - names
    arrow = next(t for t in parser._parser().terminals if t.name == "__ANON_0")
    assert arrow.pattern.value == "->"
