"""Patterns that do what a collective of the library does, told by their contracts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.diagnostics import nearest
from commlang.errors import UsageError
from commlang.expand.binding import is_tensor
from commlang.resolve.library import library_file, library_files, library_name
from commlang.resolve.modules import Definition, load_module
from commlang.source import Source
from commlang.syntax import ast
from commlang.syntax.walk import same
from commlang.verify import choose_pattern, find_pattern
from commlang.verify.locate import STDIN

if TYPE_CHECKING:
    from commlang.program import Program

TOPIC = "collectives"
"""The topic of the library whose patterns call one operation each, the backend's own."""


def reference(collective: str) -> Definition:
    """The library's pattern that only calls this collective; raises UsageError if there is none."""
    names = [library_name(path) for path in library_files()]
    known = [name.split("/")[-1] for name in names if name.startswith(f"{TOPIC}/")]
    if collective not in known:
        near = nearest(collective, known)
        hint = f"did you mean `{near}`?" if near else f"there are {', '.join(known)}"
        raise UsageError(f"`{collective}` is no collective of the library; {hint}")
    return choose_pattern(load_module(Source.read(library_file(f"{TOPIC}/{collective}"))))


def candidates(collective: str) -> list[str]:
    """The names of the library's other patterns that do the same as a collective."""
    wanted = reference(collective)
    found: list[str] = []
    for path in library_files():
        topic, _, name = library_name(path).rpartition("/")
        if topic != TOPIC:
            definition = choose_pattern(load_module(Source.read(path)))
            if difference(definition, wanted) is None:
                found.append(name)
    return found


def candidate(name: str, collective: str) -> Definition:
    """The pattern of that name; raises UsageError if it does not do the same as the collective."""
    if name == STDIN:
        raise UsageError("a table names patterns, so put the one of standard input into a file")
    wanted, definition = reference(collective), find_pattern(name)
    why = difference(definition, wanted)
    if why is not None:
        raise UsageError(f"`{name}` cannot stand in for `{collective}`: {why}")
    return definition


def difference(definition: Definition, wanted: Definition) -> str | None:
    """What a pattern lacks to stand in for another one, or None.

    It needs the same tensors, by name and shape, all of the other's parameters, defaults for those
    of its own, and each `ensure` of the other, word for word; it may promise more.
    """
    mine, others = definition.node, wanted.node
    tensors, expected = _tensors(mine), _tensors(others)
    if len(tensors) != len(expected) or not all(map(_alike, tensors, expected)):
        texts = (wanted.module.source.excerpt(p.span) for p in expected)
        return f"its tensors are not `{', '.join(texts)}`"
    have, need = _scalars(mine), _scalars(others)
    for name in need:
        if name not in have:
            return f"it has no parameter `{name}`"
    for name, param in have.items():
        if name not in need and param.default is None:
            return f"its parameter `{name}` has no default"
    for ensure in _ensures(others):
        if not any(same(ensure, promise) for promise in _ensures(mine)):
            return f"it does not say `{wanted.module.source.excerpt(ensure.span)}`"
    return None


def largest_tensor(program: Program) -> tuple[str, int, int] | None:
    """The largest tensor parameter of any rank: its dtype, its bytes and its elements."""
    sizes = [
        (view.dtype.name, view.dtype.itemsize * int(np.max(view.numel)), int(np.max(view.numel)))
        for view in program.tensors.values()
    ]
    return max(sizes, key=lambda entry: entry[1], default=None)


def _tensors(node: ast.Pattern | ast.Extern) -> list[ast.Param]:
    return [p for p in node.params if is_tensor(p)]


def _alike(mine: ast.Param, other: ast.Param) -> bool:
    assert mine.type is not None
    assert other.type is not None
    return mine.target.id == other.target.id and same(mine.type, other.type)


def _scalars(node: ast.Pattern | ast.Extern) -> dict[str, ast.Param]:
    return {p.target.id: p for p in node.params if not is_tensor(p)}


def _ensures(node: ast.Pattern | ast.Extern) -> list[ast.Ensure]:
    return [s for s in node.body if isinstance(s, ast.Ensure)]
