"""Syntax trees as short text, without places, to compare and to read in a test."""

from __future__ import annotations

from commlang.source import Source
from commlang.syntax import ast
from commlang.syntax.parser import parse


def dump(node: object) -> str:
    """`Kind(field, …)`; names and numbers stand for themselves."""
    match node:
        case ast.Name(id=text) | ast.Target(id=text):
            return text
        case ast.Number(value=value, unit=unit):
            return f"{value}{unit}"
        case ast.Node():
            fields = ", ".join(dump(getattr(node, name)) for name in node.__slots__)
            return f"{type(node).__name__}({fields})"
        case tuple():
            return f"[{', '.join(map(dump, node))}]"
        case _:
            return repr(node)


def dump_text(text: str) -> str:
    """The dump of a whole file's items."""
    return dump(parse(Source(text)).items)


def comments_of(text: str) -> list[tuple[str, bool]]:
    """The comments of a file, and whether each has its line to itself."""
    return [(c.text, c.alone) for c in parse(Source(text)).comments]


def body(*lines: str) -> str:
    """A file with one pattern of these lines."""
    return "pattern p():\n" + "".join(f"    {line}\n" for line in lines)
