"""Operations as calls of torch.distributed, and local work as calls of torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.export.expressions import ATOM, CannotExport, Writer
from commlang.export.facts import STRIDED, TENSOR
from commlang.export.lines import Line
from commlang.operations import OPERATIONS, Kind, Operation, ReduceOp
from commlang.records import record
from commlang.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Iterable

_NEWER = {
    "all_gather_into_tensor": "all_gather_single",
    "reduce_scatter_tensor": "reduce_scatter_single",
}
"""torch 2.13 warns of the older names, which do the same."""

_IN_PLACE = {
    ReduceOp.SUM: "add_",
    ReduceOp.PRODUCT: "mul_",
    ReduceOp.BAND: "bitwise_and_",
    ReduceOp.BOR: "bitwise_or_",
    ReduceOp.BXOR: "bitwise_xor_",
}
_OUT = {ReduceOp.MIN: "torch.minimum", ReduceOp.MAX: "torch.maximum"}


@record
class Where:
    """The group of a call, and a rank of it."""

    group: str
    peer: str = ""


def call(function: str, *arguments: str) -> str:
    """A call; empty arguments are left out."""
    return f"{function}({', '.join(argument for argument in arguments if argument)})"


class Calls:
    """Writes calls with the expressions of one function."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.facts, self.names = writer.facts, writer.names
        self.helpers = writer.helpers

    def arguments(self, node: ast.Call, operation: Operation) -> dict[str, ast.Expr]:
        """The arguments of a built-in operation by name."""
        names = [argument.name for argument in operation.arguments]
        given = dict(zip(names, node.args, strict=False))
        return given | {keyword.name: keyword.value for keyword in node.keywords}

    def builtin(self, node: ast.Call) -> Operation | None:
        """The built-in operation that a call names, unless the file has its own of that name."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        return None if name in self.writer.module.symbols else OPERATIONS.get(name)

    # --------------------------------------------------------------- messages

    def message(self, node: ast.Call, operation: Operation, form: str) -> str:
        """A send or recv: `form` is "run", "start" (a work) or "batch" (an entry of a batch)."""
        given = self.arguments(node, operation)
        at = self.where(given, ("dst", "src"))
        tag = self.writer.text(given["tag"]) if "tag" in given else ""
        tensor = self.writer.text(given["tensor"])
        return self.moved(operation.kind is Kind.SEND, tensor, at, tag, form)

    def moved(self, sends: bool, tensor: str, at: Where, tag: str, form: str) -> str:
        """A send or recv of a tensor, given as text."""
        tagged = f"tag={tag}" if tag not in ("", "0") else ""
        name, end = ("send", "dst") if sends else ("recv", "src")
        group = f"group={at.group}"
        if form == "batch":
            function = self.helpers.use(f"{name}_op")
            return call(function, tensor, f"{end}={at.peer}", group, tagged)
        name = f"i{name}" if form == "start" else name
        return call(f"dist.{name}", tensor, f"group_{end}={at.peer}", group, tagged)

    def where(self, given: dict[str, ast.Expr], ends: tuple[str, ...], default: str = "") -> Where:
        """The group and the peer that a call names, as places in that group."""
        group = self.group(given.get("group"))
        for end in ends:
            if f"group_{end}" in given:
                return Where(group, self.writer.text(given[f"group_{end}"]))
            if end in given:
                return Where(group, self._place(given[end], given.get("group")))
        return Where(group, default)

    def group(self, node: ast.Expr | None) -> str:
        """torch's group of a `group=` argument."""
        if node is None or self.writer.is_ranks(node):
            return "group"
        return f"{self.writer.text(node, ATOM)}.group"

    def _place(self, rank: ast.Expr, group: ast.Expr | None) -> str:
        """A rank of the pattern as a place in a group."""
        if group is None or self.writer.is_ranks(group):
            return self.writer.text(rank)
        name = self.writer.text(group, ATOM)
        if isinstance(rank, ast.Index) and self.writer.text(rank.base) == name:
            (sub,) = rank.subs
            if not isinstance(sub, ast.Slice | ast.Unary):
                return self.writer.text(sub)  # g[i] is at place i of g
        return f"{name}.place({self.writer.text(rank)})"

    # ------------------------------------------------------------ collectives

    def collective(self, node: ast.Call, operation: Operation, form: str) -> str:
        """A collective; `form` is "run", or "start" for one that returns a work."""
        given = self.arguments(node, operation)
        rooted = "0" if operation.kind in (Kind.SCATTER, Kind.GATHER) else ""
        at = self.where(given, ("dst", "src"), rooted)
        arguments = self._data(node, operation, given)
        end = next((a.name for a in operation.arguments if a.name.startswith("group_")), "")
        op = f"op={self.writer.text(given['op'])}" if "op" in given else ""
        for name in ("output_split_sizes", "input_split_sizes"):
            if name in given:
                arguments.append(f"{name}={self.listed(given[name])}")
        return call(
            self._function(operation.name),
            *arguments,
            f"{end}={at.peer}" if end else "",
            "" if op == "op=dist.ReduceOp.SUM" else op,
            f"group={at.group}",
            "async_op=True" if form == "start" else "",
        )

    def _function(self, name: str) -> str:
        if name in self.facts.uneven:
            return self.helpers.use(f"{name}_uneven")
        return f"dist.{_NEWER.get(name, name)}"

    def _data(self, node: ast.Call, operation: Operation, given: dict[str, ast.Expr]) -> list[str]:
        flat = node in self.facts.reshaped and operation.name not in self.facts.uneven
        found: list[str] = []
        for argument in operation.arguments:
            value = given.get(argument.name)
            if value is None or argument.access is None:
                continue
            if argument.type == "tensors":
                text = self.listed(value)
                text = f"[part.view(-1) for part in {self.writer.in_text(value)}]" if flat else text
            else:
                text = f"{self.writer.text(value, ATOM)}.view(-1)" if flat else ""
                text = text or self.writer.text(value)
            found.append(text)
        return found

    def listed(self, node: ast.Expr) -> str:
        """A list as Python's own, which torch insists on."""
        inner = node
        while isinstance(inner, ast.Paren):
            inner = inner.inner
        if isinstance(inner, ast.ListExpr | ast.Comprehension):
            return self.writer.text(inner)
        return f"list({self.writer.iterated(node)})"

    # ------------------------------------------------------------- local work

    def local(self, node: ast.Call, operation: Operation) -> str:
        """scale, fill or compute."""
        given = self.arguments(node, operation)
        if operation.kind is Kind.COMPUTE:
            return self._compute(node, given)
        tensor = self.writer.text(given["tensor"], ATOM)
        if operation.kind is Kind.SCALE:
            return f"{tensor}.mul_({self.writer.real(given['factor'])})"
        return f"{tensor}.fill_({self.writer.real(given['value'])})"

    def _compute(self, node: ast.Call, given: dict[str, ast.Expr]) -> str:
        """Label and duration may stand in either order."""
        found: dict[str, str] = {}
        for name, value in given.items():
            if name in ("reads", "writes"):
                one = TENSOR in self.facts.of(value)
                found[name] = f"[{self.writer.text(value)}]" if one else self.listed(value)
            elif name == "matmul":
                found[name] = self.listed(value)
            else:
                is_label = not self.facts.of(value)
                found["label" if is_label else "duration"] = self.writer.real(value)
        given_text = [f"{name}={found[name]}" for name in _COMPUTE if name in found]
        if "label" in found:
            given_text[0] = found["label"]
        return call(self.helpers.use("compute"), *given_text)

    def arrow(self, node: ast.Transfer) -> str:
        """A copy, or an accumulation, on this rank."""
        source, target = node.source.value, node.target.value
        ops = [keyword.value for keyword in node.keywords if keyword.name == "op"]
        if not ops:
            return f"{self.writer.text(target, ATOM)}.copy_({self.writer.text(source)})"
        into = self.writer.text(target, ATOM)
        added = self.writer.text(source)
        if node in self.facts.cast:
            added = f"{self.writer.text(source, ATOM)}.to({into}.dtype)"
        return self.accumulated(into, added, self.writer.text(ops[0]))

    def accumulated(self, target: str, source: str, op: str) -> str:
        """source reduced into target, both given as text."""
        literal = op.removeprefix("dist.ReduceOp.").lower()
        if op.startswith("dist.ReduceOp.") and literal in _IN_PLACE:
            return f"{target}.{_IN_PLACE[ReduceOp(literal)]}({source})"
        if op.startswith("dist.ReduceOp.") and literal in _OUT:
            return f"{_OUT[ReduceOp(literal)]}({target}, {source}, out={target})"
        return call(self.helpers.use("accumulate"), target, source, op)

    def empty_like(self, node: ast.Expr) -> str:
        """A new tensor of the dtype and shape of another."""
        if STRIDED in self.facts.of(node):  # torch would keep the strides
            text = self.writer.text(node, ATOM)
            return f"{text}.new_empty({text}.shape)"
        return f"torch.empty_like({self.writer.text(node)})"


_COMPUTE = ("label", "duration", "matmul", "reads", "writes")


def refuse_unknown(writer: Writer, node: ast.Node) -> CannotExport:
    """For a statement that has no form in a script."""
    return writer.refuse(node, "this statement has no form in a Python script")


def lines_of(texts: Iterable[str]) -> list[Line]:
    """Simple lines."""
    return [Line(text) for text in texts]
