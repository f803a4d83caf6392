"""Long lines of Python broken as `ruff format` would break them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH = 100
_OPEN, _CLOSE = "([{", ")]}"


def wrapped(text: str, indent: int, tail: str = "") -> list[str]:
    """A line of code, on more lines if it is longer than the width; `tail` comes behind it."""
    pad = " " * indent
    if indent + len(text) + len(tail) <= WIDTH:
        return [pad + text + tail]
    if text.startswith("assert ") and text.endswith('"'):
        condition, message = _split(text, ",")
        return [f"{pad}{condition}, (", f"{pad}    {message}", f"{pad})"]
    start, end = _last_brackets(text)
    if start < 0:
        return [pad + text + tail]
    inside = text[start + 1 : end].strip()
    head, rest = pad + text[: start + 1], pad + text[end:] + tail
    parts = _split(inside, ",")
    clauses = _clauses(inside)
    listed = text[start] in "[{" and len(parts) > 1
    lone = text[start] == "[" and len(parts) == len(clauses) == 1
    if not listed and not lone and len(inside) + indent + 4 <= WIDTH:
        return [head, f"{pad}    {inside}", rest]
    if len(clauses) > 1:
        broken = [line for clause in clauses for line in wrapped(clause, indent + 4)]
        return [head, *broken, rest]
    comma = "," if not inside.startswith(("*", "for ")) or len(parts) > 1 else ""
    if len(parts) == 1 and text[start] == "(" and not _is_call(text, start):
        comma = ""
    return [head, *(line for part in parts for line in wrapped(part, indent + 4, comma)), rest]


def _is_call(text: str, start: int) -> bool:
    return start > 0 and (text[start - 1].isalnum() or text[start - 1] in "_)]")


def _last_brackets(text: str) -> tuple[int, int]:
    """The last pair of brackets at the top that has something inside, (-1, -1) if none."""
    found = (-1, -1)
    depth = start = 0
    for place, char in _code(text):
        if char in _OPEN:
            start = place if not depth else start
            depth += 1
        elif char in _CLOSE:
            depth -= 1
            if not depth and place > start + 1:
                found = (start, place)
    return found


def _split(text: str, mark: str) -> list[str]:
    """The parts of a text between marks at the top."""
    cuts, depth = [-1], 0
    for place, char in _code(text):
        depth += (char in _OPEN) - (char in _CLOSE)
        if not depth and char == mark:
            cuts.append(place)
    parts = [text[a + 1 : b].strip() for a, b in zip(cuts, [*cuts[1:], len(text)], strict=True)]
    return [part for part in parts if part]


def _clauses(text: str) -> list[str]:
    """A comprehension in its parts: the element, then each `for` and `if` behind one."""
    cuts, depth, seen = [0], 0, False
    for place, char in _code(text):
        depth += (char in _OPEN) - (char in _CLOSE)
        if depth or char != " ":
            continue
        if text.startswith(" for ", place) or (seen and text.startswith(" if ", place)):
            seen = True
            cuts.append(place + 1)
    return [text[a:b].strip() for a, b in zip(cuts, [*cuts[1:], len(text)], strict=True)]


def _code(text: str) -> Iterator[tuple[int, str]]:
    """The characters of a text that stand in no string, with their places."""
    inside = escaped = False
    for place, char in enumerate(text):
        if not inside:
            yield place, char
            inside = char == '"'
        elif escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == '"':
            inside = False
