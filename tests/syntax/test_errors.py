"""What the parser says of each mistake: the code, the place, the words and what to write.

`errors.txt` holds the cases: a file's lines after `|`, then what is said of it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from commlang.errors import PatternError
from commlang.source import Source
from commlang.syntax.parser import parse


def _cases() -> list[tuple[str, str]]:
    blocks = Path(__file__).with_name("errors.txt").read_text("utf-8").split("\n\n")
    cases: list[tuple[str, str]] = []
    for block in blocks:
        lines = block.strip("\n").split("\n")
        source = [line[2:] for line in lines if line.startswith("|")]
        if source:
            cases.append(("\n".join([*source, ""]), "\n".join(lines[len(source) :])))
    return cases


ODD = [
    ("pattern p(", "CL001 `(` is never closed\nat 1:10 `(`"),
    ("pattern p():\n    let a = f(1 + [2,", "CL001 `[` is never closed\nat 2:19 `[`"),
    (
        "pattern p():\n\tpass\n        pass\n",
        "CL001 tabs and spaces are mixed in the indentation\n"
        "at 3:9 `pass`\nhelp: indent with spaces only",
    ),
    (
        "pattern p():\n    let a\xa0= 1\n",
        "CL001 unexpected `'\\xa0'`\nat 2:10 `\xa0`\nnote: expected `(` or `=`\n"
        "help: this is a no-break space; write an ordinary one",
    ),
    (
        "pattern p():\n    pass\n\x0c\n",
        "CL001 unexpected `'\\x0c'`\nat 3:1 `\x0c`\nnote: expected `extern` or `from` or `pattern`",
    ),
    ("pattern p():\n    pass\u2028\n", "CL001 unexpected `'\\u2028'`\nat 2:9 `\u2028`"),
    (
        "pattern p():\n    \x1b[31m\n",
        "CL001 unexpected `'\\x1b'`\nat 2:5 `\x1b`\nnote: expected a value",
    ),
]
"""Texts that no editor would keep: without a last newline, or with characters not printed."""


def finding(text: str) -> str:
    """What is said of a text that does not parse."""
    with pytest.raises(PatternError) as caught:
        parse(Source(text, "file.cl"))
    (diagnostic,) = caught.value.diagnostics
    label = diagnostic.labels[0]
    line, column = label.source.position(label.span.start)
    marked = text[label.span.start : label.span.end].strip("\n")
    said = [f"{diagnostic.code} {diagnostic.message}", f"at {line}:{column} `{marked}`"]
    said += [f"note: {note}" for note in diagnostic.notes]
    return "\n".join([*said, f"help: {diagnostic.help}"] if diagnostic.help else said)


@pytest.mark.parametrize(("text", "said"), [*_cases(), *ODD])
def test_the_finding_of_a_mistake(text: str, said: str) -> None:
    assert finding(text) == said


def test_all_cases_are_read() -> None:
    assert len(_cases()) >= 100


def test_a_bracket_closed_by_another_is_shown_at_both_ends() -> None:
    with pytest.raises(PatternError) as caught:
        parse(Source("pattern p():\n    let a = x[(rank + 1 % world]\n", "file.cl"))
    assert (
        str(caught.value)
        == """\
error[CL001]: `(` is closed by `]`
  --> file.cl:2:32
  |
2 |     let a = x[(rank + 1 % world]
  |                                ^
  --> file.cl:2:15
  |
2 |     let a = x[(rank + 1 % world]
  |               ^ opened here
  = help: `(` needs `)`"""
    )
