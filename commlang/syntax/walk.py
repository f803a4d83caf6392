"""Walks over the syntax tree that need no recursion, so that depth cannot exhaust the stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from commlang.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Iterator


def children(node: ast.Node) -> Iterator[ast.Node]:
    """The nodes directly below a node, in source order of its fields."""
    for name in node.__slots__:
        value = getattr(node, name)
        if isinstance(value, ast.Node):
            yield value
        elif isinstance(value, tuple):
            for item in value:  # pyright: ignore[reportUnknownVariableType]
                if isinstance(item, ast.Node):
                    yield item


def walk(node: ast.Node) -> Iterator[ast.Node]:
    """A node and all below it, in source order."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(list(children(current))))


def depth_exceeds(node: ast.Node, limit: int) -> ast.Node | None:
    """The first node nested deeper than `limit`, or None."""
    stack = [(node, 0)]
    while stack:
        current, depth = stack.pop()
        if depth > limit:
            return current
        stack.extend((child, depth + 1) for child in children(current))
    return None


def same(first: ast.Node, second: ast.Node) -> bool:
    """Whether two trees are equal in all but the places of their nodes, comments included."""
    stack: list[tuple[object, object]] = [(first, second)]
    while stack:
        a, b = stack.pop()
        if type(a) is not type(b):
            return False
        if isinstance(a, ast.Node):
            stack.extend((getattr(a, name), getattr(b, name)) for name in a.__slots__)
        elif isinstance(a, tuple) and isinstance(b, tuple):
            left, right = cast("tuple[object, ...]", a), cast("tuple[object, ...]", b)
            if len(left) != len(right):
                return False
            stack.extend(zip(left, right, strict=True))
        elif a != b:
            return False
    return True
