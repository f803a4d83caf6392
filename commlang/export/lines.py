"""Python statements as a tree of lines: what is not used is left out, what is long is wrapped."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commlang.export.wrap import WIDTH, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_WORD = re.compile(r"[A-Za-z_]\w*")


def _words(text: str) -> list[str]:
    return _WORD.findall(_STRING.sub("", text))


@dataclass(slots=True, eq=False)
class Line:
    """A statement; a compound one has parts, each a head and its body.

    `defines` is a name that the statement is there for. `message` is set on one that only appends
    this to the messages of a batch.
    """

    text: str = ""
    parts: list[tuple[str, list[Line]]] = field(default_factory=list[tuple[str, "list[Line]"]])
    defines: str = ""
    message: str = ""
    above: list[str] = field(default_factory=list[str])
    """Comments on lines of their own."""
    beside: str = ""
    """A comment at the end of the line."""
    spaced: bool = False
    """Whether an empty line stands before it."""

    @property
    def is_function(self) -> bool:
        """Whether it defines a function."""
        return bool(self.parts) and self.parts[0][0].startswith("def ")

    def words(self) -> Iterator[str]:
        """All words of its text."""
        yield from _words(self.text)
        for head, body in self.parts:
            yield from _words(head)
            for line in body:
                yield from line.words()


def prune(lines: list[Line]) -> list[Line]:
    """The lines without definitions that nothing uses and compound statements without a body."""
    while True:
        words = Counter(word for line in lines for word in line.words())
        kept = _kept(lines, words)
        if kept is None:
            return lines
        lines = kept


def _kept(lines: list[Line], words: Counter[str]) -> list[Line] | None:
    """The lines that stay, or None if all do."""
    found: list[Line] = []
    changed = False
    for line in lines:
        if line.defines and words[line.defines] <= Counter(line.words())[line.defines]:
            changed = True
            continue
        for number, (head, body) in enumerate(line.parts):
            kept = _kept(body, words)
            if kept is not None:
                changed = True
                line.parts[number] = (head, kept)
        while line.parts and not line.parts[-1][1]:
            changed = True
            line.parts.pop()
        if line.text or line.parts:
            found.append(line)
    return found if changed or len(found) < len(lines) else None


def rendered(lines: list[Line], indent: int) -> list[str]:
    """The text of lines, wrapped to the width."""
    found: list[str] = []
    pad = " " * indent
    before: Line | None = None
    for line in lines:
        apart = line.spaced or line.is_function or (before is not None and before.is_function)
        if apart and before is not None:
            found.append("")
        heads = line.parts or [(line.text, [])]
        for number, (head, body) in enumerate(heads):
            text = wrapped(head, indent)
            beside = f"  {line.beside}" if line.beside and not number else ""
            fits = len(text) == 1 and len(text[0]) + len(beside) <= WIDTH
            if not number:
                found += [pad + comment for comment in line.above]
                found += [pad + line.beside] if beside and not fits else []
            found += [text[0] + beside, *text[1:]] if fits else text
            if line.parts:
                found += rendered(body, indent + 4) or [f"{pad}    pass"]
        before = line
    return found
