"""Expressions of the language as expressions of Python: most are the same text."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, TypeGuard

from commlang.diagnostics import Label
from commlang.dtypes import DTYPES
from commlang.errors import CommlangError
from commlang.export.facts import CHUNKS, FRACTION, GROUP, INT, LIST, TENSOR
from commlang.operations import GROUP_ATTRIBUTES, REDUCE_OPS
from commlang.records import record
from commlang.syntax import ast

if TYPE_CHECKING:
    from commlang.export.facts import Facts
    from commlang.export.helpers import Helpers
    from commlang.export.names import Names
    from commlang.resolve.modules import Module

TERNARY, OR, AND, NOT, COMPARE, SUM, PRODUCT, UNARY, POWER, ATOM = range(0, 50, 5)
_BINARY = {
    "|": 21,
    "^": 22,
    "&": 23,
    "<<": 24,
    ">>": 24,
    "+": SUM,
    "-": SUM,
    "*": PRODUCT,
    "/": PRODUCT,
    "//": PRODUCT,
    "%": PRODUCT,
    "**": POWER,
}
_ITERATED = ("sum", "min", "max", "all", "any")
_SIMPLE = re.compile(r"-?\w+\Z")


class CannotExport(CommlangError):
    """Something that has no form in the script; the text says where it stands."""

    exit_code = 2


@record
class Text:
    """Python text and how tightly its outermost operator binds."""

    text: str
    binds: int = ATOM

    def at(self, least: int) -> str:
        """The text where at least that binding is needed."""
        return self.text if self.binds >= least else f"({self.text})"


@record
class Writer:
    """Writes the expressions of one function."""

    names: Names
    facts: Facts
    helpers: Helpers
    module: Module

    @property
    def world(self) -> str:
        """The number of ranks, which is a constant outside of functions."""
        return self.names.look_up("world") or "world"

    def text(self, node: ast.Expr, least: int = TERNARY) -> str:
        """The text of an expression, in parentheses if it binds less than `least`."""
        return self.write(node).at(least)

    def refuse(self, node: ast.Node, what: str) -> CannotExport:
        """The error that a node has no form in a script."""
        label = Label(self.module.source, node.span)
        gutter = len(str(self.module.source.position(node.span.start)[0]))
        return CannotExport("\n".join([f"cannot export: {what}", *label.render(gutter)]))

    def write(self, node: ast.Expr) -> Text:
        """The text of an expression; an int where an int is wanted."""
        found = self._write(node)
        if node in self.facts.integers and FRACTION in self.facts.of(node):
            return Text(f"int({found.text})")
        return found

    def _write(self, node: ast.Expr) -> Text:
        match node:
            case ast.Name():
                return Text(self._name(node))
            case ast.Number():
                return self._number(node)
            case ast.String(_, value):
                return Text(quoted(value))
            case ast.Paren(_, inner):
                found = self.write(inner)
                return Text(found.at(ATOM)) if found.binds < ATOM else found
            case ast.Attr():
                return self._attribute(node)
            case ast.Index():
                return self._index(node)
            case ast.Call():
                return self._call(node)
            case ast.Unary(_, op, operand):
                binds = NOT if op == "not" else UNARY
                return Text(f"{op}{' ' * (op == 'not')}{self.text(operand, binds)}", binds)
            case ast.Binary():
                return self._binary(node)
            case ast.BoolOp(_, op, operands):
                binds = AND if op == "and" else OR
                return Text(f" {op} ".join(self.text(o, binds + 1) for o in operands), binds)
            case ast.Compare(_, ops, operands):
                parts = [self.text(o, COMPARE + 1) for o in operands]
                rest = zip(ops, parts[1:], strict=True)
                return Text(parts[0] + "".join(f" {op} {part}" for op, part in rest), COMPARE)
            case ast.Conditional(_, test, then, other):
                first, second = self.text(then, OR), self.text(test, OR)
                return Text(f"{first} if {second} else {self.text(other)}", TERNARY)
            case ast.ListExpr(_, items):
                return Text(f"[{', '.join(map(self.text, items))}]")
            case ast.Comprehension():
                return Text(f"[{self._comprehension(node)}]")
            case ast.At():
                raise self.refuse(node, "`@` cannot stand here in a script")

    # ------------------------------------------------------------------- atoms

    def _name(self, node: ast.Name) -> str:
        known = self.names.look_up(node.id)
        if known is not None:
            return known
        match node.id:
            case "rank" | "world":
                return node.id
            case "ranks":
                return f"{self.helpers.use('Ranks')}(range({self.world}), rank, group)"
            case "true" | "false":
                return node.id.capitalize()
            case name if name in REDUCE_OPS:
                return f"dist.ReduceOp.{name.upper()}"
            case name if name in DTYPES:
                return f"torch.{name}"
            case _:
                raise self.refuse(node, f"`{node.id}` has no value in a script")

    def is_ranks(self, node: ast.Expr) -> bool:
        """Whether an expression is the group that the pattern runs on, by its own name."""
        return isinstance(node, ast.Name) and node.id == "ranks"

    def _number(self, node: ast.Number) -> Text:
        if isinstance(node.value, Fraction):
            return Text(self.fraction(node.value))
        return Text(integer(node.value))

    def fraction(self, value: Fraction) -> str:
        self.helpers.use("Fraction")
        return f"Fraction({value.numerator}, {value.denominator})"

    def real(self, node: ast.Expr) -> str:
        """A number for torch or a function of Python: an int, or a float in place of a fraction."""
        inner = node
        while isinstance(inner, ast.Paren):
            inner = inner.inner
        kinds = self.facts.of(inner)
        if FRACTION not in kinds:
            return self.text(node)
        if isinstance(inner, ast.Number):
            return repr(float(inner.value))
        if self._is_quotient(inner):
            return f"{self.text(inner.left, PRODUCT)} / {self.text(inner.right, PRODUCT + 1)}"
        if INT in kinds:
            return f"{self.helpers.use('number')}({self.text(node)})"
        return f"float({self.text(node)})"

    def _is_quotient(self, node: ast.Expr) -> TypeGuard[ast.Binary]:
        """Whether a node divides ints, as Python's floats do with the least error."""
        if not isinstance(node, ast.Binary) or node.op != "/":
            return False
        parts = (self.facts.of(part) for part in (node.left, node.right))
        return self.facts.of(node) == {FRACTION} and all(kinds == {INT} for kinds in parts)

    # --------------------------------------------------------------- operators

    def _binary(self, node: ast.Binary) -> Text:
        op, binds = node.op, _BINARY[node.op]
        left, right = node.left, node.right
        if op == "**":
            return Text(f"{self.text(left, POWER + 1)} ** {self.text(right, UNARY)}", binds)
        if op != "/":
            return Text(f"{self.text(left, binds)} {op} {self.text(right, binds + 1)}", binds)
        kinds = self.facts.of(node)
        if kinds <= {INT}:
            return Text(f"{self.text(left, binds)} // {self.text(right, binds + 1)}", binds)
        if INT in kinds:
            exact = self.helpers.use("exact")
            return Text(f"{exact}({self.text(left)}, {self.text(right)})")
        self.helpers.use("Fraction")
        return Text(f"Fraction({self.text(left)}) / {self.text(right, binds + 1)}", binds)

    # ------------------------------------------------- attributes and indices

    def _attribute(self, node: ast.Attr) -> Text:
        if self.is_ranks(node.base):
            world = self.world
            own = {"size": world, "index": "rank", "next": f"(rank + 1) % {world}"}
            text = own.get(node.name, f"(rank - 1) % {world}")
            return Text(text, PRODUCT if "%" in text else ATOM)
        base = self.text(node.base, ATOM)
        if node.name == "numel":
            return Text(f"{base}.numel()")
        if node.name in GROUP_ATTRIBUTES or node.name in ("shape", "ndim"):
            return Text(f"{base}.{node.name}")
        raise self.refuse(node, f"`.{node.name}` has no form in a script")

    def _index(self, node: ast.Index) -> Text:
        if self.is_ranks(node.base):
            return self._of_ranks(node)
        base, kinds = self.text(node.base, ATOM), self.facts.of(node.base)
        subs = [self._sub(sub) for sub in node.subs]
        if len(subs) == 1 or (TENSOR in kinds and not kinds & {LIST, CHUNKS}):
            return Text(f"{base}[{', '.join(subs)}]")
        if TENSOR in kinds:
            raise self.refuse(node, "this is a tensor in one call and a list in another")
        return Text(base + "".join(f"[{sub}]" for sub in subs))

    def _of_ranks(self, node: ast.Index) -> Text:
        """An item or a slice of `ranks`, which are the numbers from 0."""
        (sub,) = node.subs
        if not isinstance(sub, ast.Slice):
            if isinstance(sub, ast.Unary):
                return Text(f"{self.world} - {self.text(sub.operand, PRODUCT)}", SUM)
            return self.write(sub)
        bounds = [part for part in (sub.low, sub.high, sub.step) if part is not None]
        if any(isinstance(part, ast.Unary) for part in bounds):
            return Text(f"range({self.world})[{self._sub(sub)}]")
        parts = [
            self.text(sub.low) if sub.low else "0",
            self.text(sub.high) if sub.high else self.world,
            *([self.text(sub.step)] if sub.step else []),
        ]
        return Text(f"range({', '.join(parts)})")

    def _sub(self, sub: ast.Expr | ast.Slice) -> str:
        if not isinstance(sub, ast.Slice):
            return self.text(sub)
        low, high, step = (self.text(p) if p else "" for p in (sub.low, sub.high, sub.step))
        if all(_SIMPLE.match(part) for part in (low, high, step) if part):
            return f"{low}:{high}" + f":{step}" * bool(step)
        text = f"{low} :" if low else ":"
        text += f" {high}" if high else ""
        if step:
            text += (" :" if high else ":") + f" {step}"
        return text

    # ------------------------------------------------------------------- calls

    def _call(self, node: ast.Call) -> Text:
        func = node.func
        if isinstance(func, ast.Attr):
            return self._method(node, func)
        assert isinstance(func, ast.Name)
        known = self.names.look_up(func.id)
        if known is not None:
            return Text(f"{known}({', '.join(map(self.text, node.args))})")
        return self._function(func.id, node.args)

    def _function(self, name: str, args: tuple[ast.Expr, ...]) -> Text:
        match name:
            case "log2":
                base = self.text(args[0], ATOM)
                base = f"({base})" if base.isdigit() else base
                return Text(f"{base}.bit_length() - 1", SUM)
            case "log2ceil":
                least = self.text(args[0], SUM)
                return Text(f"({least} - 1).bit_length()")
            case "premul_sum":
                return Text(f"dist._make_nccl_premul_sum({self.real(args[0])})")
            case "share":
                self.helpers.use("share")
            case "reversed" | "enumerate" | "zip":
                return Text(f"list({self._lazy(name, args)})")
            case "len" if self.is_ranks(args[0]):
                return Text(self.world)
            case _ if name in _ITERATED and len(args) == 1:
                return Text(f"{name}({self.iterated(args[0])})")
            case _:
                pass
        return Text(f"{name}({', '.join(map(self._listed, args))})")

    def _listed(self, node: ast.Expr) -> str:
        return f"range({self.world})" if self.is_ranks(node) else self.text(node)

    def _lazy(self, name: str, args: tuple[ast.Expr, ...]) -> str:
        ints = args[1:] if name == "enumerate" else ()
        lists = args[:1] if name == "enumerate" else args
        if name == "reversed":  # of a list, also where Python's own would be an iterator
            parts = [self._listed(args[0])]
        else:
            parts = [*map(self.iterated, lists), *map(self.text, ints)]
        return f"{name}({', '.join(parts)}{', strict=True' * (name == 'zip')})"

    def iterated(self, node: ast.Expr) -> str:
        """A list that is gone through once: an iterator will do."""
        if self.is_ranks(node):
            return f"range({self.world})"
        if isinstance(node, ast.Comprehension) and node.brackets != "[]":
            return self._comprehension(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            if name in ("reversed", "enumerate", "zip") and self.names.look_up(name) is None:
                return self._lazy(name, node.args)
        return self.text(node)

    def _method(self, node: ast.Call, func: ast.Attr) -> Text:
        base = self.text(func.base, ATOM)
        args = list(map(self.text, node.args))
        match func.name:
            case "chunks":
                named = {k.name: self.text(k.value) for k in node.keywords}
                count = args[0] if args else named["k"]
                dim = args[1] if len(args) > 1 else named.get("dim", "")
                dims = [f"dim={dim}"] if dim not in ("", "0") else []
                return Text(self.helpers.chunks(base, ", ".join([count, *dims])))
            case "flatten":
                return Text(f"{base}.view(-1)")
            case "reshape":
                return Text(f"{base}.view({', '.join(args)})")
            case _:
                return Text(f"{base}.{func.name}({', '.join(args)})")

    def _comprehension(self, node: ast.Comprehension) -> str:
        self.names.push()
        clauses = list(map(self._clause, node.clauses))
        element = self.text(node.element)
        self.names.pop()
        return " ".join([element, *clauses])

    def _clause(self, clause: ast.Clause) -> str:
        iterable = self.in_text(clause.iterable)
        targets = ", ".join(self.names.declare(t.id) for t in clause.targets)
        condition = f" if {self.text(clause.condition, OR)}" if clause.condition else ""
        return f"for {targets} in {iterable}{condition}"

    def in_text(self, node: ast.Expr) -> str:
        """What a `for` runs over."""
        text = self.iterated(node)
        if isinstance(node, ast.Comprehension) and node.brackets != "[]":
            return f"({text})"
        return text if not isinstance(node, ast.Conditional) else f"({text})"

    def is_group(self, node: ast.Expr) -> bool:
        """Whether an expression is a group that was made, not the pattern's own."""
        return GROUP in self.facts.of(node) and not self.is_ranks(node)


def integer(value: int) -> str:
    """An int as Python writes it; digits are grouped where there are many."""
    return str(value) if abs(value) < 100_000 else f"{value:_}"


def quoted(value: str) -> str:
    """A string in double quotes."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t") + '"'
