"""Formatting random files changes neither their meaning nor their comments, and settles at once."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from commlang.source import Source
from commlang.syntax import ast
from commlang.syntax.formatter import format_source
from commlang.syntax.layout import WIDTH
from commlang.syntax.parser import parse
from commlang.syntax.walk import children, same, walk
from tests.syntax.dump import comments_of, dump_text
from tests.syntax.generate import Writer

FILES = st.integers(0, 2**32).map(lambda seed: Writer(Random(seed)).module())


@given(FILES)
def test_the_meaning_stays(text: str) -> None:
    formatted = format_source(Source(text))
    assert dump_text(formatted) == dump_text(text)
    assert comments_of(formatted) == comments_of(text)


@given(FILES)
def test_formatting_twice_is_formatting_once(text: str) -> None:
    formatted = format_source(Source(text))
    assert format_source(Source(formatted)) == formatted


@given(FILES)
def test_formatted_text_is_clean(text: str) -> None:
    formatted = format_source(Source(text))
    assert not formatted or formatted.endswith("\n")
    assert not formatted.startswith("\n")
    for line in formatted.replace('"""one\ntwo', '"""one two').split("\n"):
        assert line == line.rstrip()
        indent = len(line) - len(line.lstrip(" "))
        assert line[:indent] == " " * indent
        assert indent % 4 == 0
    assert "\n\n\n" not in formatted


@given(FILES)
def test_spans_hold_their_nodes(text: str) -> None:
    module = parse(Source(text))
    for node in walk(module):
        assert 0 <= node.span.start <= node.span.end <= len(text)
        part = text[node.span.start : node.span.end]
        assert part == part.strip() or isinstance(node, ast.Module)
        if isinstance(node, ast.Name | ast.Target):
            assert part == node.id
        if isinstance(node, ast.Comment):
            assert part == node.text
        if not isinstance(node, ast.Module) and not _is_head(node):
            assert all(
                node.span.start <= child.span.start and child.span.end <= node.span.end
                for child in children(node)
            )


def _is_head(node: ast.Node) -> bool:
    """Whether a node's span is its first line only, without the block below."""
    return isinstance(
        node,
        ast.Pattern | ast.Extern | ast.For | ast.If | ast.Branch | ast.Parallel | ast.Sequence,
    )


@given(FILES, FILES)
def test_trees_are_the_same_only_if_their_dumps_are(one: str, other: str) -> None:
    first, second = parse(Source(one)), parse(Source(other))
    assert same(first, first)
    equal = dump_text(one) == dump_text(other) and comments_of(one) == comments_of(other)
    assert not same(first, second) or equal


def test_the_width_is_that_of_the_projects_own_code() -> None:
    assert WIDTH == 100
