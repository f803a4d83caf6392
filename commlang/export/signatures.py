"""How patterns and externs are declared and called: the process group, tensors, then the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from commlang.dtypes import DTYPES
from commlang.expand.binding import handed_on, is_tensor
from commlang.export.calls import call
from commlang.export.expressions import ATOM, Writer
from commlang.export.lines import Line
from commlang.export.names import Names
from commlang.operations import REDUCE_OPS
from commlang.syntax import ast
from commlang.syntax.walk import walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlang.resolve.modules import Definition

_ALWAYS = ("rank", "world", "ranks")


class Signature:
    """The parameters of a pattern: which are Python's, and which follow from the shapes of others.

    `python` holds the names in Python. A number that is a dimension of a tensor, and a dtype that
    is a tensor's, are read off that tensor.
    """

    def __init__(self, definition: Definition, taken: frozenset[str]) -> None:
        params = definition.node.params
        self.tensors = [param for param in params if is_tensor(param)]
        self.derived = _derived(params)
        own = [param for param in params if not is_tensor(param)]
        self.scalars = [param for param in own if param.target.id not in self.derived]
        self.names = Names(taken)
        order = (*self.tensors, *self.scalars)
        self.python = {p.target.id: self.names.declare(p.target.id) for p in order}

    def head(self, writer: Writer) -> list[str]:
        """The parameters as they are declared, behind the group."""
        texts = [self.python[param.target.id] for param in self.tensors]
        if any(param.default is None for param in self.scalars):
            texts.append("*")
        for param in self.scalars:
            name, default = self.python[param.target.id], param.default
            if default is None:
                texts.append(name)
            else:
                text = writer.text(default) if is_literal(default) else "None"
                texts.append(f"{name}={text}")
        return texts

    def bindings(self, writer: Writer) -> list[Line]:
        """What follows from the arguments: sizes, dtypes, and defaults that are computed."""
        lines: list[Line] = []
        for name, (param, read) in self.derived.items():
            own = writer.names.declare(name)
            lines.append(Line(f"{own} = {read.format(self.python[param])}", defines=own))
        for param in self.scalars:
            if param.default is not None and not is_literal(param.default):
                name = self.python[param.target.id]
                text = f"{name} = {writer.text(param.default)}"
                lines.append(Line(parts=[(f"if {name} is None:", [Line(text)])]))
        return lines


def _derived(params: tuple[ast.Param, ...]) -> dict[str, tuple[str, str]]:
    """Names that follow from a parameter: which, and how they are read off it."""
    tensors = {param.target.id for param in params if is_tensor(param)}
    declared = {param.target.id for param in params}
    found: dict[str, tuple[str, str]] = {}
    for param in params:
        kind, name = param.type, param.target.id
        if kind is None:
            continue
        if is_tensor(param) and kind.name in declared:
            found.setdefault(kind.name, (name, "{}.dtype"))
        for place, dim in enumerate(kind.shape or ()):
            bare = dim.id if isinstance(dim, ast.Name) else ""
            if not bare or bare in tensors or bare in _ALWAYS:
                continue
            if is_tensor(param):
                found.setdefault(bare, (name, f"{{}}.shape[{place}]"))
            elif place < 2 and not _mentions(param.default, bare):
                found.setdefault(bare, (name, "len({}[0])" if place else "len({})"))
    return found


def _mentions(node: ast.Expr | None, name: str) -> bool:
    return node is not None and any(isinstance(n, ast.Name) and n.id == name for n in walk(node))


def is_literal(node: ast.Expr) -> bool:
    """Whether a default means the same everywhere."""
    match node:
        case ast.Number(_, value):
            return isinstance(value, int)
        case ast.Name(_, name):
            return name in (*REDUCE_OPS, *DTYPES, "true", "false")
        case ast.Unary(_, _, operand):
            return is_literal(operand)
        case ast.String():
            return True
        case _:
            return False


class Signatures:
    """The functions of a script, as seen from the pattern `own` that is being written."""

    def __init__(
        self, own: Definition, functions: Mapping[Definition, str], taken: frozenset[str]
    ) -> None:
        self.own, self.functions, self._taken = own, functions, taken

    def pattern_call(
        self, definition: Definition, node: ast.Call, group: str, writer: Writer
    ) -> str:
        """The call of a pattern on a group."""
        signature = Signature(definition, self._taken)
        given = _given(definition, node)
        tensors = [writer.text(given[param.target.id]) for param in signature.tensors]
        scalars = [
            f"{signature.python[p.target.id]}={writer.text(given[p.target.id])}"
            for p in signature.scalars
            if p.target.id in given
        ]
        return call(self.functions[definition], group, *tensors, *scalars)

    def extern_call(self, definition: Definition, node: ast.Call, writer: Writer) -> str:
        """The call of an extern with all that the Executor too would give it, in order."""
        given = _given(definition, node)
        names = Names(frozenset())
        inner = replace(writer, names=names, module=definition.module)
        params = definition.node.params
        for param in params:
            if param.target.id in given:
                names.bind(param.target.id, writer.text(given[param.target.id], ATOM))
        for name, (param, read) in _derived(params).items():
            if param in given and name not in given:
                names.bind(name, read.format(writer.text(given[param], ATOM)))
        texts: list[str] = []
        for param in handed_on(params):
            value = given.get(param.target.id)
            if value is not None:
                text = writer.text(value) if is_tensor(param) else writer.real(value)
                texts.append(text)
            elif param.default is not None:
                texts.append(inner.real(param.default))
            else:
                texts.append(inner.text(ast.Name(param.span, param.target.id)))
        return call(self.functions[definition], *texts)

    def shape(self, kind: ast.TypeRef, writer: Writer) -> str:
        """The sizes of a type, as torch.empty takes them."""
        return ", ".join(writer.text(dim) for dim in kind.shape or ()) or "()"

    def dtype(self, kind: ast.TypeRef, writer: Writer) -> str:
        """torch's dtype of a type."""
        return writer.text(ast.Name(kind.span, kind.name))


def _given(definition: Definition, node: ast.Call) -> dict[str, ast.Expr]:
    """The arguments of a call by parameter."""
    names = [param.target.id for param in definition.node.params]
    given = dict(zip(names, node.args, strict=False))
    return given | {k.name: k.value for k in node.keywords if k.name in names}
