"""Each example in docs/language.md does what the page says, and the page leaves nothing out.

A ```commlang block is a whole file, or statements for the pattern that the page names for them.
`<!-- wrong: CL111 -->` above a fence: the block must give that code and no other; without it the
block must be clean, statically and, for each of its patterns, expanded and checked on 4 ranks
(`<!-- world: 8 -->` for others). `<!-- file: NAME -->` names a block that others import.
Tables headed `expression | value` and `expression | reads as` are compared row by row.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commlang.checks import check_program
from commlang.dtypes import DTYPES
from commlang.errors import PatternError
from commlang.expand import statements
from commlang.expand.expressions import MAX_CALLS
from commlang.expand.run import MAX_EVENTS, expand
from commlang.expand.values import SEQUENCES, View, item
from commlang.operations import (
    CONTRACT_FUNCTIONS,
    FUNCTIONS,
    GROUP_ATTRIBUTES,
    OPERATIONS,
    REDUCE_OPS,
    TENSOR_ATTRIBUTES,
    TENSOR_METHODS,
)
from commlang.program import build
from commlang.resolve.check import check_all
from commlang.resolve.modules import MAX_FILES, Module, load_module
from commlang.resources import grammar_path
from commlang.source import MAX_BYTES, Source
from commlang.syntax import ast
from commlang.syntax.literals import DURATIONS, SIZES
from commlang.syntax.parser import RESERVED, parse, parse_expression
from commlang.syntax.scan import MAX_DEPTH
from commlang.syntax.walk import walk

PAGE = Path(__file__).parents[1] / "docs" / "language.md"
TEXT = PAGE.read_text(encoding="utf-8")
VISIBLE = re.sub(r"<!--.*?-->", "", TEXT, flags=re.DOTALL)

WORLD = 4
BLOCK = re.compile(
    r"(?P<marks>(?:^<!-- (?:wrong|world|file): \S+ -->\n)*)^```commlang\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
HEAD = re.search(r"`(pattern example\(.*\):)`", TEXT)
assert HEAD is not None, "the page names the pattern around its examples"


@dataclass(frozen=True, slots=True)
class Example:
    where: str
    text: str
    wrong: str | None
    world: int
    file: str | None


def _example(match: re.Match[str]) -> Example:
    marks = dict(re.findall(r"<!-- (\w+): (\S+) -->", match["marks"]))
    line = TEXT.count("\n", 0, match.start("body")) + 1
    return Example(
        f"language.md:{line}",
        _whole(match["body"]),
        marks.get("wrong"),
        int(marks.get("world", WORLD)),
        marks.get("file"),
    )


def _whole(body: str) -> str:
    """A block as a file: statements get the page's pattern around them."""
    if re.search(r"^(pattern|extern|from)\b", body, re.MULTILINE):
        return body
    return _wrapped(*body.splitlines())


def _wrapped(*statements: str) -> str:
    assert HEAD is not None
    lines = (f"    {line}".rstrip() for line in statements)
    return "\n".join([HEAD[1], *lines]) + "\n"


EXAMPLES = [_example(match) for match in BLOCK.finditer(TEXT)]
RIGHT = [example for example in EXAMPLES if example.wrong is None]
WRONG = [example for example in EXAMPLES if example.wrong is not None]


def _found(example: Example, folder: Path) -> list[tuple[str, str]]:
    """Code and text of every finding: of the file, or else of its patterns once expanded."""
    try:
        module = load_module(Source(example.text, str(folder / "example.cl")))
        found = check_all(module) or [
            finding
            for name in module.exported
            for finding in check_program(build(module.symbols[name], example.world, {}))
        ]
    except PatternError as error:
        found = list(error.diagnostics)
    return [(finding.code, finding.render()) for finding in found]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that the page shows."""
    for example in EXAMPLES:
        if example.file is not None:
            (tmp_path / example.file).write_text(example.text, encoding="utf-8")
    return tmp_path


# ---------------------------------------------------------------------------- examples


def test_every_commlang_block_of_the_page_is_an_example() -> None:
    assert len(EXAMPLES) == TEXT.count("```commlang\n")
    assert len(RIGHT) > 35
    assert len(WRONG) > 35
    comments = re.findall(r"<!-- (?:wrong|world|file):.*?-->\n(.*)", TEXT)
    assert all(line.startswith(("```commlang", "<!-- ")) for line in comments)


@pytest.mark.parametrize("example", RIGHT, ids=lambda example: example.where)
def test_a_right_example_is_clean(example: Example, folder: Path) -> None:
    assert [text for _, text in _found(example, folder)] == []


@pytest.mark.parametrize("example", WRONG, ids=lambda example: example.where)
def test_a_wrong_example_gives_the_code_it_names(example: Example, folder: Path) -> None:
    found = _found(example, folder)
    assert {code for code, _ in found} == {example.wrong}, "\n".join(text for _, text in found)


# --------------------------------------------------------------------------- expressions


def _table(head: str) -> list[tuple[str, str]]:
    """The rows of every table with that head: its first two columns, each one code span."""
    rows: list[tuple[str, str]] = []
    for match in re.finditer(rf"^\| {head} \|.*\n\|[-| ]+\n((?:\|.*\n)+)", TEXT, re.MULTILINE):
        for line in match[1].splitlines():
            cells = re.split(r"(?<!\\)\|", line)[1:3]
            one, two = (cell.strip().replace("\\|", "|") for cell in cells)
            assert one[0] == one[-1] == two[0] == two[-1] == "`", line
            rows.append((one[1:-1], two[1:-1]))
    assert rows, f"no table `{head}`"
    return rows


VALUES = _table(r"expression \| value")
READINGS = _table(r"expression \| reads as")


def _evaluated(text: str) -> Any:
    """The value of an expression on rank 1 of the page's pattern, as plain Python data."""
    module = load_module(Source(_wrapped(f"let value = {text}", "barrier()")))
    assert check_all(module) == []
    recording = expand(module.symbols["example"], WORLD, ranks=[1], keep_values=True)
    return _plain(recording.chunks[0].scope.lookup("value"))


def _plain(value: Any) -> Any:
    if isinstance(value, SEQUENCES):
        size = _plain(value.length)
        return [_plain(item(value, i)) for i in range(size)]
    if isinstance(value, np.ndarray):
        assert value.shape == (1,)
        return value[0].item()
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, View):
        return tuple(_plain(getattr(value, field.name)) for field in fields(value))
    return value


@pytest.mark.parametrize(("expression", "value"), VALUES)
def test_an_expression_has_the_value_shown(expression: str, value: str) -> None:
    one, two = _evaluated(expression), _evaluated(value)
    assert one == two
    assert type(one) is type(two)
    assert expression != value


@pytest.mark.parametrize(("expression", "reading"), READINGS)
def test_an_expression_reads_as_shown(expression: str, reading: str) -> None:
    trees = [_shape(parse_expression(text, "page")[1]) for text in (expression, reading)]
    assert trees[0] == trees[1]
    assert reading.count("(") > expression.count("(")


def _shape(node: Any) -> Any:
    """A tree without its brackets and places."""
    if isinstance(node, ast.Paren):
        return _shape(node.inner)
    if isinstance(node, tuple):
        return tuple(map(_shape, node))
    if not is_dataclass(node):
        return node
    parts = (getattr(node, field.name) for field in fields(node) if field.name != "span")
    return (type(node).__name__, *map(_shape, parts))


# ------------------------------------------------------------------------- nothing left out


@cache
def _trees() -> list[ast.Module]:
    """The right examples and the expressions of the value tables."""
    texts = [example.text for example in RIGHT]
    texts += [_wrapped(f"let value = {text}") for row in VALUES for text in row]
    return [parse(Source(text)) for text in texts]


@cache
def _nodes() -> list[ast.Node]:
    return [node for tree in _trees() for node in walk(tree)]


def test_every_construct_of_the_syntax_has_an_example() -> None:
    kinds = {
        kind
        for kind in vars(ast).values()
        if isinstance(kind, type) and issubclass(kind, ast.Node) and kind is not ast.Node
    }
    used = {type(node) for node in _nodes()}
    # Comments are kept beside the tree, and a Number may hold a size or a duration.
    assert {kind.__name__ for kind in kinds - used - {ast.Comment}} == set()
    assert any(tree.comments for tree in _trees())
    assert {node.unit for node in _nodes() if isinstance(node, ast.Number)} == {"", "s"}


def test_every_operation_function_method_and_attribute_has_an_example() -> None:
    calls = [node for node in _nodes() if isinstance(node, ast.Call)]
    called = {node.func.id for node in calls if isinstance(node.func, ast.Name)}
    assert called >= {*OPERATIONS, *FUNCTIONS, *CONTRACT_FUNCTIONS}
    methods = {node.func.name for node in calls if isinstance(node.func, ast.Attr)}
    attributes = {node.name for node in _nodes() if isinstance(node, ast.Attr)}
    assert methods >= set(TENSOR_METHODS)
    assert attributes >= {*TENSOR_ATTRIBUTES, *GROUP_ATTRIBUTES}


def test_the_reader_sees_every_code_word_and_limit() -> None:
    assert set(re.findall(r"CL\d{3}", VISIBLE)) == {example.wrong for example in WRONG}
    listed = set(re.findall(r"`([a-z0-9_]+)`", VISIBLE))
    assert listed >= {*DTYPES, *REDUCE_OPS, *RESERVED}
    suffixes = {*SIZES, *DURATIONS}
    assert set(re.findall(r"`([A-Za-z]+)`", VISIBLE)) >= suffixes
    depths = {str(MAX_DEPTH), str(statements.MAX_DEPTH)}
    limits = depths | {f"{MAX_EVENTS:,}", f"{MAX_CALLS:,}", str(MAX_FILES), str(MAX_BYTES >> 20)}
    section = VISIBLE.split("\n## Limits\n")[1].split("\n## ")[0]
    numbers = set(re.findall(r"[\d,]*\d", section))
    assert numbers >= limits


def test_the_reserved_words_are_those_of_the_parser() -> None:
    section = VISIBLE.split("\n## Reserved words\n")[1].strip().split("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", section)) == RESERVED


def test_the_short_grammar_has_every_keyword_and_sign_of_the_grammar() -> None:
    short = VISIBLE.split("\n## The grammar in short\n")[1]
    rules = grammar_path().read_text("utf-8").split("\nNAME: ")[0]
    words = set(re.findall(r'"([^"\s]+)"', rules))
    assert words - set(re.findall(r'"([^"\s]+)"', short)) == set()


SIGNATURE = re.compile(r"^\| `(\w+)\(([^)]*)\)` \| (?:`torch\.(?:distributed\.)?(\w+)`|—)", re.M)


def test_the_table_of_operations_gives_their_arguments_and_those_of_torch() -> None:
    import torch.distributed as dist

    rows = {m[1]: (m[2].split(", "), m[3]) for m in SIGNATURE.finditer(TEXT)}
    assert rows.keys() == OPERATIONS.keys()
    for name, operation in OPERATIONS.items():
        shown, function = rows[name]
        assert shown == [a.name + "=" * (not a.required) for a in operation.arguments], name
        if function is None:
            assert operation.kind.is_local
            continue
        assert function == name
        theirs = inspect.signature(getattr(dist, function)).parameters
        assert [a.name for a in operation.arguments if a.name not in theirs] == [], name


def test_a_wrong_block_is_noticed(tmp_path: Path) -> None:
    example = Example("here", _wrapped("all_reduce(x, op=summ)"), None, 4, None)
    assert [code for code, _ in _found(example, tmp_path)] == ["CL101"]
    clean = Example("here", _wrapped("all_reduce(x)"), "CL101", 4, None)
    assert _found(clean, tmp_path) == []
    assert isinstance(load_module(Source(clean.text)), Module)
