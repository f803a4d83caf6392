"""Handles of async operations: a variable, a list or a dict, as the pattern uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.export.lines import Line
from commlang.syntax import ast
from commlang.syntax.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.export.expressions import Writer
    from commlang.export.names import Names


class Handles:
    """The handles of one pattern, which have names of their own in Python too.

    One that is started and waited for once, in one block, is a variable. Others may hold nothing
    or several works: a list, or with indices a dict.
    """

    def __init__(self, body: tuple[ast.Stmt, ...], names: Names, ran: set[ast.Node]) -> None:
        nodes = [node for statement in body for node in walk(statement) if node in ran]
        bound = [node for node in nodes if isinstance(node, ast.Async)]
        waited = [node for node in nodes if isinstance(node, ast.Wait)]
        self._names = {_base(n.handle): "" for n in (*bound, *waited)}
        self._indexed = {_base(n.handle) for n in bound if isinstance(n.handle, ast.Index)}
        self._single: set[str] = set()
        for name in self._names:
            starts = [n for n in bound if _base(n.handle) == name]
            ends = [n for n in waited if _base(n.handle) == name]
            if name not in self._indexed and len(starts) == len(ends) == 1:
                plain = not isinstance(starts[0].operation, ast.Transfer)
                if plain and _together(starts[0], ends[0], body):
                    self._single.add(name)
            self._names[name] = names.declare_apart(name)

    def declared(self) -> list[Line]:
        """The lines that make the lists and dicts."""
        return [
            Line(f"{own} = {'{}' if name in self._indexed else '[]'}", defines=own)
            for name, own in self._names.items()
            if name not in self._single
        ]

    def bind(self, handle: ast.Expr, work: str, writer: Writer) -> str:
        """Keep the work of an operation."""
        name = _base(handle)
        own = self._names[name]
        if isinstance(handle, ast.Index):
            return f"{own}[{_key(handle, writer)}] = {work}"
        return f"{own} = {work}" if name in self._single else f"{own}.append({work})"

    def wait(self, handle: ast.Expr, writer: Writer) -> str:
        """Wait for it, or for all of its name."""
        name = _base(handle)
        own = self._names[name]
        if isinstance(handle, ast.Index):
            key = _key(handle, writer)
            key = f"({key})" if len(handle.subs) > 1 else key
            return f"{own}.pop({key}).wait()"
        if name in self._single:
            return f"{own}.wait()"
        return f"{writer.helpers.use('wait_all')}({own})"


def _base(handle: ast.Expr) -> str:
    base = handle.base if isinstance(handle, ast.Index) else handle
    assert isinstance(base, ast.Name)
    return base.id


def _key(handle: ast.Index, writer: Writer) -> str:
    return ", ".join(writer.text(sub) for sub in handle.subs if not isinstance(sub, ast.Slice))


def _together(start: ast.Stmt, end: ast.Stmt, body: tuple[ast.Stmt, ...]) -> bool:
    """Whether two statements stand in one block."""
    return any(start in block and end in block for block in _blocks(body))


def _blocks(body: tuple[ast.Stmt, ...]) -> Iterator[tuple[ast.Stmt, ...]]:
    yield body
    for statement in body:
        match statement:
            case ast.For() | ast.Sequence() | ast.Parallel():
                yield from _blocks(statement.body)
            case ast.If():
                for branch in statement.branches:
                    yield from _blocks(branch.body)
            case _:
                pass
