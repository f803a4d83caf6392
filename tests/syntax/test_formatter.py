"""What the formatter makes of a file.

`formats.txt` holds the cases: a name, the file's lines after `|`, the formatted lines after `>`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from commlang.errors import CommlangError, PatternError
from commlang.source import Source
from commlang.syntax import formatter
from commlang.syntax.formatter import format_source
from tests.syntax.dump import body


def _cases() -> dict[str, tuple[str, str]]:
    blocks = Path(__file__).with_name("formats.txt").read_text("utf-8").strip().split("\n\n")
    cases: dict[str, tuple[str, str]] = {}
    for block in blocks:
        name, *lines = block.split("\n")
        before = "".join(f"{line[2:]}\n" for line in lines if line[0] == "|")
        after = "".join(f"{line[2:]}\n" for line in lines if line[0] == ">")
        cases[name] = (before, after or before)
    return cases


@pytest.mark.parametrize(("before", "after"), _cases().values(), ids=_cases())
def test_format(before: str, after: str) -> None:
    assert format_source(Source(before)) == after
    assert format_source(Source(after)) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("\n \n", ""),
        ("# a", "# a\n"),
        ("\n\n\t# a  \n\n\n\n#b\n\n", "# a\n\n#b\n"),
        ("pattern p():\n\tif a:\n\t\tpass\n", "pattern p():\n    if a:\n        pass\n"),
        ("pattern p():\n pass\n    # end", "pattern p():\n    pass\n    # end\n"),
        ("pattern p():\n pass\n# end", "pattern p():\n    pass\n\n# end\n"),
        (
            'pattern p():\n  """Two\n  lines\t """  # c\n  pass\n',
            'pattern p():\n    """Two\n  lines\t """  # c\n    pass\n',
        ),
    ],
)
def test_blanks(before: str, after: str) -> None:
    assert format_source(Source(before)) == after
    assert format_source(Source(after)) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("let a=b", "let a = b"),
        ("let f ( a,b )=a", "let f(a, b) = a"),
        ("let a = - b+~c - -d", "let a = -b + ~c - -d"),
        ("let a = not  b", "let a = not b"),
        ("let a = - - b", "let a = --b"),
        ("let a = b*c//d%e", "let a = b * c // d % e"),
        ("let a = b ** 2", "let a = b**2"),
        ("let a = b ** -c", "let a = b**-c"),
        ("let a = b[0]**(c)", "let a = b[0] ** (c)"),
        ("let a = b<<1&c^d", "let a = b << 1 & c ^ d"),
        ("let a = b<=c!=d not  in e", "let a = b <= c != d not in e"),
        ("let a = x@r", "let a = x @ r"),
        ("let a = ( (b) )", "let a = ((b))"),
        ("let a = [ ]", "let a = []"),
        ("let a = [1 ,2,]", "let a = [1, 2]"),
        ("let a = [ i for i in(b) if(c) ]", "let a = [i for i in (b) if (c)]"),
        ("let a = f ( b ) [ c ] . d (e)", "let a = f(b)[c].d(e)"),
        ("let a = f(b , c = 1,d  =2)", "let a = f(b, c=1, d=2)"),
        ("let a = x[ 0 : n ]", "let a = x[0:n]"),
        ("let a = x[ : ,1 :,: 2, : : 2]", "let a = x[:, 1:, :2, ::2]"),
        ("let a = x[-1:n+1]", "let a = x[-1 : n + 1]"),
        ("let a = x[n-1:]", "let a = x[n - 1 :]"),
        ("let a = x[:n-1, f(x)::2]", "let a = x[: n - 1, f(x) :: 2]"),
        ("let a = x[ f(y)[0:1] : : z ]", "let a = x[f(y)[0:1] :: z]"),
        ("let a = x[i,:n+1]", "let a = x[i, : n + 1]"),
        ("let a = 1_000Ki", "let a = 1_000Ki"),
        ("let a = 2.50", "let a = 2.50"),
        ('let a = f("b",  """c""")', 'let a = f("b", """c""")'),
        ("let let=group+op", "let let = group + op"),
        ('require(a)and b,"why"', 'require (a) and b, "why"'),
        ("require -a<b", "require -a < b"),
        ("ensure[a]==b for i in(c)", "ensure [a] == b for i in (c)"),
        ("preset small:world=4,n=1Ki", "preset small: world = 4, n = 1Ki"),
        ("mesh a=2,b=-1", "mesh a = 2, b = -1"),
        ("group  g=[r for r in ranks]", "group g = [r for r in ranks]"),
        ("temp x:float32[n,2]", "temp x: float32[n, 2]"),
        ("temp x :like y[0]", "temp x: like y[0]"),
        ("wait (work [0])", "wait(work[0])"),
        ("x@a->y@b,op=sum", "x @ a -> y @ b, op=sum"),
        ("x->y , op = sum", "x -> y, op=sum"),
        ("(x) -> -y", "(x) -> -y"),
        ("h[0]=async f (x)", "h[0] = async f(x)"),
        ("send(x,dst=-1)   ", "send(x, dst=-1)"),
    ],
)
def test_spacing(before: str, after: str) -> None:
    assert format_source(Source(body(before))) == body(after)


def test_heads() -> None:
    text = (
        "from  ..a . b  import c  as d,e\n"
        "extern e ( x:read int [ n ],y : bool=true )\n"
        "pattern p (n=1Mi,x:float32[n]) :\n"
        "  parallel  for r in(ranks) :\n    for i , j in a :\n      pass\n"
    )
    assert format_source(Source(text)) == (
        "from ..a.b import c as d, e\n"
        "\n"
        "extern e(x: read int[n], y: bool = true)\n"
        "\n"
        "pattern p(n = 1Mi, x: float32[n]):\n"
        "    parallel for r in (ranks):\n        for i, j in a:\n            pass\n"
    )


def test_a_file_that_does_not_parse_is_refused() -> None:
    with pytest.raises(PatternError, match=r"nothing is indented under this line"):
        format_source(Source("pattern p():\npass\n", "file.cl"))


@pytest.mark.parametrize("wrong", ["pattern p():\n    x -> z\n", "pattern p():\n    x -> y\n# c\n"])
def test_text_that_means_something_else_is_never_given_back(
    wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formatter, "_aligned", lambda _: wrong.split("\n"))
    with pytest.raises(CommlangError, match=r"^file\.cl: formatting would change the meaning"):
        format_source(Source("pattern p():\n    x -> y\n", "file.cl"))
    monkeypatch.setattr(formatter, "_aligned", lambda _: ["pattern p("])
    with pytest.raises(CommlangError, match=r"^file\.cl: formatting would change the meaning"):
        format_source(Source("pattern p():\n    x -> y\n", "file.cl"))
