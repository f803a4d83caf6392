"""The comments of a pattern, kept beside the statements that they stand at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.syntax import ast

if TYPE_CHECKING:
    from commlang.export.lines import Line
    from commlang.resolve.modules import Module


class Comments:
    """The comments of one file; each is given out once."""

    def __init__(self, module: Module) -> None:
        self._text = module.source.text
        self._left = {comment.span.start: comment for comment in module.tree.comments}

    def attach(self, node: ast.Stmt, start: int, lines: list[Line]) -> None:
        """Give a statement's comments to its lines; what stands before it begins at `start`."""
        shown = [line for line in lines if line.text or line.parts]
        if not shown:
            return
        before, beside = self._take(start, _head(node).span.start), self._beside(node)
        shown[0].above = before + shown[0].above
        if beside and not shown[-1].beside:
            shown[-1 if not lines[-1].parts else 0].beside = beside
        gap = self._text[start : node.span.start]
        shown[0].spaced |= "\n\n" in gap.replace(" ", "")

    def _take(self, start: int, end: int) -> list[str]:
        places = sorted(p for p, c in self._left.items() if start <= p < end and c.alone)
        return [self._left.pop(place).text for place in places]

    def _beside(self, node: ast.Stmt) -> str:
        """The comment at the end of a statement's line, or of the head of a compound one."""
        start = node.span.start
        end = self._text.find("\n", _head(node).span.end)
        end = len(self._text) if end < 0 else end
        places = [p for p, c in self._left.items() if start <= p < end and not c.alone]
        return " ".join(self._left.pop(place).text for place in sorted(places))


def _head(node: ast.Stmt) -> ast.Node:
    """What of a statement stands on its first line."""
    match node:
        case ast.For() | ast.Parallel() if node.iterable is not None:
            return node.iterable
        case ast.If() if node.branches[0].condition is not None:
            return node.branches[0].condition
        case ast.Parallel() | ast.Sequence() if node.body:
            return ast.Pass(node.span._replace(end=node.span.start))
        case _:
            return node
