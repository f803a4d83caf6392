"""Every construct of the grammar and the tree it becomes.

`trees.txt` holds statements and expressions: their lines after `|`, then the tree.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from commlang.errors import PatternError
from commlang.source import Source
from commlang.syntax import ast
from commlang.syntax.parser import parse, parse_expression
from commlang.syntax.walk import walk
from tests.syntax.dump import body, comments_of, dump, dump_text


def _cases(part: str) -> list[tuple[str, str]]:
    text = Path(__file__).with_name("trees.txt").read_text("utf-8")
    blocks = text.split(f"# {part}\n\n")[1].split("\n\n# ")[0].strip("\n").split("\n\n")
    rows = [block.split("\n") for block in blocks]
    return [("\n".join(line[2:] for line in row[:-1]), row[-1]) for row in rows]


@pytest.mark.parametrize(("text", "tree"), _cases("statements"))
def test_statement(text: str, tree: str) -> None:
    assert dump_text(body(*text.split("\n"))) == f"[Pattern(p, [], None, [{tree}])]"


@pytest.mark.parametrize(("text", "tree"), _cases("expressions"))
def test_expression(text: str, tree: str) -> None:
    assert dump_text(body(f"let v = {text}")) == f"[Pattern(p, [], None, [Let(v, {tree})])]"


MODULES = [
    ("", "[]"),
    ("# only\n\n", "[]"),
    ("from ring import a\n", "[Import(0, ['ring'], [ImportName('a', a)])]"),
    (
        "from ..lib.ring import a as b, c\n",
        "[Import(2, ['lib', 'ring'], [ImportName('a', b), ImportName('c', c)])]",
    ),
    ("extern e()\n", "[Extern(e, [], None, [])]"),
    (
        'extern e(x: read int[n], y: write float32, z: update bool):\n    """Doc."""\n'
        "    cost 2us\n    assume x == y for i in z\n    require n\n",
        (
            "[Extern(e, [Param(x, 'read', TypeRef('int', [n]), None), Param(y, 'write', Typ"
            "eRef('float32', None), None), Param(z, 'update', TypeRef('bool', None), None)]"
            ", Docstring('Doc.'), [Cost(1/500000s), Assume(Compare(['=='], [x, y]), [Clause"
            "([i], z, None)]), Require(n, None)])]"
        ),
    ),
    ('extern e():\n    """Doc."""\n', "[Extern(e, [], Docstring('Doc.'), [])]"),
    (
        'pattern p(x: float32[n], n = 1Mi, op = sum,):\n    """Doc."""\n    pass\n',
        (
            "[Pattern(p, [Param(x, None, TypeRef('float32', [n]), None), Param(n, None, Non"
            "e, 1048576), Param(op, None, None, sum)], Docstring('Doc.'), [Pass()])]"
        ),
    ),
    (
        "pattern p():\n    pass\npattern q(): # c\n\n    pass",
        "[Pattern(p, [], None, [Pass()]), Pattern(q, [], None, [Pass()])]",
    ),
]


@pytest.mark.parametrize(("text", "tree"), MODULES)
def test_module(text: str, tree: str) -> None:
    assert dump_text(text) == tree


@pytest.mark.parametrize("kind", ast.Stmt.__args__ + ast.Expr.__args__)
def test_every_kind_of_node_has_a_case(kind: type[ast.Node]) -> None:
    trees = "".join(tree for part in ("statements", "expressions") for _, tree in _cases(part))
    trees += "".join(tree for _, tree in MODULES)
    assert kind in (ast.Name, ast.Number) or f"{kind.__name__}(" in trees


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("0", 0, ""),
        ("007", 7, ""),
        ("1_000_000", 10**6, ""),
        ("2k", 2000, ""),
        ("2K", 2000, ""),
        ("1.5Mi", 3 << 19, ""),
        ("64Gi", 64 << 30, ""),
        ("200T", 200 * 10**12, ""),
        ("0.1", Fraction(1, 10), ""),
        ("25e-1", Fraction(5, 2), ""),
        ("1e3", 1000, ""),
        ("1e003", 1000, ""),
        ("2s", Fraction(2), "s"),
        ("2ms", Fraction(1, 500), "s"),
        ("5us", Fraction(1, 200_000), "s"),
        ("1ns", Fraction(1, 10**9), "s"),
    ],
)
def test_number(text: str, value: int | Fraction, unit: str) -> None:
    _, number = parse_expression(text, "--set n")
    assert isinstance(number, ast.Number)
    assert (number.value, number.unit, number.text) == (value, unit, text)


def test_an_expression_from_the_command_line() -> None:
    source, value = parse_expression(" [1, 2 * world] ", "--set counts")
    assert dump(value) == "ListExpr([1, Binary('*', 2, world)])"
    assert source.excerpt(value.span) == "[1, 2 * world]"


@pytest.mark.parametrize("text", ["", "1 +", "1\n    pass", "1\npattern q():\n    pass", "a = b"])
def test_what_is_no_expression_is_refused_by_its_option(text: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse_expression(text, "--set n")
    assert caught.value.diagnostics[0].message.startswith(f"`{text}` is not a value")
    assert caught.value.diagnostics[0].where() == "--set n:1:1"


SPANNED = """\
from ring import hop  # far
extern load(x: write float32[n]):
    cost 2ms

pattern p(x: read float32[n], n = 1Mi):
    require (n > 0) and x, "text"
    if n == 1:
        work[0] = async x[0:n] @ 0 -> x @ 1, op=sum
    else:
        send(x.chunks(2)[-1], dst=0)
"""


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (ast.Import, ["from ring import hop"]),
        (ast.Extern, ["extern load(x: write float32[n])"]),
        (ast.Pattern, ["pattern p(x: read float32[n], n = 1Mi)"]),
        (ast.Param, ["x: write float32[n]", "x: read float32[n]", "n = 1Mi"]),
        (ast.TypeRef, ["float32[n]", "float32[n]"]),
        (ast.Cost, ["cost 2ms"]),
        (ast.Require, ['require (n > 0) and x, "text"']),
        (ast.Paren, ["(n > 0)"]),
        (ast.BoolOp, ["(n > 0) and x"]),
        (ast.Branch, ["if n == 1", "else"]),
        (ast.Async, ["work[0] = async x[0:n] @ 0 -> x @ 1, op=sum"]),
        (ast.Transfer, ["x[0:n] @ 0 -> x @ 1, op=sum"]),
        (ast.Place, ["x[0:n] @ 0", "x @ 1"]),
        (ast.Slice, ["0:n"]),
        (ast.Call, ["send(x.chunks(2)[-1], dst=0)", "x.chunks(2)"]),
        (ast.Keyword, ["op=sum", "dst=0"]),
        (ast.Unary, ["-1"]),
    ],
)
def test_the_span_of_a_node_is_its_text(kind: type[ast.Node], texts: list[str]) -> None:
    nodes = [node for node in walk(parse(Source(SPANNED))) if isinstance(node, kind)]
    assert [SPANNED[node.span.start : node.span.end] for node in nodes] == texts


def test_comments_are_kept_in_order() -> None:
    text = '# a\n\npattern p(  # b\n    # c\n):\n    """# no"""  #d \n    let s = "# no"\n    # e'
    alone = [("# a", True), ("# b", False), ("# c", True), ("#d", False), ("# e", True)]
    assert comments_of(text) == alone


@pytest.mark.parametrize(
    "name", ["group", "op", "sum", "mesh", "cost", "like", "temp", "let", "wait"]
)
def test_most_words_of_the_language_stay_names(name: str) -> None:
    text = f"pattern {name}({name}: {name}[n], n = {name}):\n    f({name}, {name}={name})\n"
    call = f"CallStatement(Call(f, [{name}], [Keyword('{name}', {name})]))"
    param = f"Param({name}, None, TypeRef('{name}', [n]), None), Param(n, None, None, {name})"
    assert dump_text(text) == f"[Pattern({name}, [{param}], None, [{call}])]"


def test_windows_line_ends_and_a_byte_order_mark_are_read() -> None:
    source = Source.decode(b"\xef\xbb\xbfpattern p():\r\n    pass\r\n", "file.cl")
    assert dump(parse(source).items) == "[Pattern(p, [], None, [Pass()])]"
