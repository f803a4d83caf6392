"""Statements: loops, branches and bindings as Python's, `parallel:` in the order that it means."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commlang.export.calls import Calls, Where, refuse_unknown
from commlang.export.expressions import ATOM, COMPARE, quoted
from commlang.export.lines import Line, prune
from commlang.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from commlang.export.comments import Comments
    from commlang.export.expressions import Writer
    from commlang.export.handles import Handles
    from commlang.export.signatures import Signatures

_TO_DROP = (ast.Pass, ast.Preset, ast.Ensure, ast.Assume, ast.Cost)


@dataclass(slots=True)
class Parallel:
    """A `parallel:` being written, in the pass that starts things or in a later one."""

    phase: str
    """"start", "local" for what is done meanwhile, or "wait"."""
    depth: int
    """How many blocks were open where it began: names bound since may change under a thread."""
    messages: bool = False
    works: bool = False
    accumulated: list[str] = field(default_factory=list[str])
    """The op of each accumulating transfer, as text."""
    varied: bool = False
    """Whether that text means something inside the block only."""

    @property
    def has_one_op(self) -> bool:
        """Whether all accumulations are of one op, which can be named behind the block."""
        return len(set(self.accumulated)) == 1 and not self.varied


class Blocks:
    """Writes the statements of one function to `lines`."""

    def __init__(
        self, writer: Writer, signatures: Signatures, handles: Handles, comments: Comments
    ) -> None:
        self.writer, self.calls = writer, Calls(writer)
        self.names, self.facts, self.helpers = writer.names, writer.facts, writer.helpers
        self.signatures, self.handles, self.comments = signatures, handles, comments
        self.lines: list[Line] = []
        self.parallel: Parallel | None = None
        self.device = ""

    # ----------------------------------------------------------------- blocks

    def block(self, body: tuple[ast.Stmt, ...], start: int) -> None:
        """Write the statements that ran; `start` is where the text of the block begins."""
        for node in body:
            if node in self.facts.ran and not isinstance(node, _TO_DROP):
                before = len(self.lines)
                self._statement(node)
                self.comments.attach(node, start, self.lines[before:])
            start = node.span.end

    @contextmanager
    def _body(self) -> Generator[list[Line]]:
        """Write to a body of its own, in a block of its own."""
        outside, self.lines = self.lines, []
        self.names.push()
        yield self.lines
        self.names.pop()
        self.lines = outside

    def put(self, text: str, *, defines: str = "", message: str = "") -> None:
        """Write a line."""
        self.lines.append(Line(text, defines=defines, message=message))

    def _statement(self, node: ast.Stmt) -> None:
        match node:
            case ast.For(_, targets, iterable, body):
                self._for(targets, iterable, body)
            case ast.If():
                self._if(node)
            case ast.Parallel():
                self._parallel(node)
            case ast.Sequence(span, body):
                if self.parallel is None:
                    self._inline(body, span.start)
                else:
                    self._branch(lambda: self.block(body, span.start))
            case ast.CallStatement(_, call):
                self._call(call, None)
            case ast.Transfer():
                self._transfer(node, None)
            case ast.Async(_, handle, ast.Transfer() as transfer):
                self._transfer(transfer, handle)
            case ast.Async(_, handle, ast.CallStatement(_, call)):
                self._call(call, handle)
            case ast.Wait(_, handle):
                if self.parallel is None or self.parallel.phase == "wait":
                    self.put(self.handles.wait(handle, self.writer))
            case _:
                self._binding(node)

    def _binding(self, node: ast.Stmt) -> None:
        match node:
            case ast.Let(_, target, value):
                text = self.writer.text(value)
                name = self.names.declare(target.id)
                self.put(f"{name} = {text}", defines=name)
            case ast.LetFunction():
                self._function(node)
            case ast.Temp():
                self._temp(node)
            case ast.Group():
                self._group(node)
            case ast.Mesh():
                self._mesh(node)
            case ast.Require(_, condition, message):
                said = f", {quoted(message)}" if message else ""
                self.put(f"assert {self.writer.text(condition)}{said}")
            case _:
                raise refuse_unknown(self.writer, node)

    def _inline(self, body: tuple[ast.Stmt, ...], start: int) -> None:
        self.names.push()
        self.block(body, start)
        self.names.pop()

    # --------------------------------------------------------------- bindings

    def _label(self, name: str) -> str:
        return quoted(f"{self.signatures.own.node.name}.{name}")

    def _function(self, node: ast.LetFunction) -> None:
        if node not in self.facts.applied:  # contracts may use it, and say what Python cannot
            return
        params = [param.id for param in node.params]
        self.names.push()
        named = [self.names.declare(param) for param in params]
        text = self.writer.text(node.value)
        self.names.pop()
        name = self.names.declare(node.target.id)
        head = f"def {name}({', '.join([*named, *self._frozen(text)])}):"
        self.lines.append(Line(parts=[(head, [Line(f"return {text}")])], defines=name))

    def _frozen(self, text: str) -> list[str]:
        """Names bound inside a `parallel:` as defaults, which keep the value of their iteration."""
        if self.parallel is None:
            return []
        used = set(Line(text).words())
        return [f"{name}={name}" for name in sorted(self.names.since(self.parallel.depth) & used)]

    def _temp(self, node: ast.Temp) -> None:
        if node.like is not None:
            text = self.calls.empty_like(node.like)
        else:
            assert node.type is not None
            shape = self.signatures.shape(node.type, self.writer)
            dtype = self.signatures.dtype(node.type, self.writer)
            device = self.device or f"{self.helpers.use('device_of')}(group)"
            text = f"torch.empty({shape}, dtype={dtype}, device={device})"
        name = self.names.declare(node.target.id)
        self.put(f"{name} = {text}", defines=name)

    def _group(self, node: ast.Group) -> None:
        members, label = self.writer.in_text(node.value), self._label(node.target.id)
        if isinstance(node.value, ast.Comprehension):
            members = self.writer.text(node.value)
        name = self.names.declare(node.target.id)
        made = self.helpers.use("subgroup")
        self.put(f"{name} = {made}(group, {label}, {members})", defines=name)

    def _mesh(self, node: ast.Mesh) -> None:
        axes = [(axis.name, self.writer.text(axis.value)) for axis in node.axes]
        sizes = ", ".join(f"{name}={size}" for name, size in axes)
        names = [self.names.declare(name) for name, _ in axes]
        targets = ", ".join(names) if len(names) > 1 else f"({names[0]},)"
        label = quoted(self.signatures.own.node.name)
        made = f"{self.helpers.use('mesh')}(group, {label}, {sizes})"
        self.put(f"{targets} = {made}", defines=names[0] if len(names) == 1 else "")

    # ---------------------------------------------------------------- control

    def _for(
        self, targets: tuple[ast.Target, ...], iterable: ast.Expr, body: tuple[ast.Stmt, ...]
    ) -> None:
        if not any(node in self.facts.ran for node in body):
            return
        over = self.writer.in_text(iterable)
        with self._body() as inner:
            named = ", ".join(self.names.declare(target.id) for target in targets)
            self.block(body, iterable.span.end)
        self.lines.append(Line(parts=[(f"for {named} in {over}:", inner)]))

    def _if(self, node: ast.If) -> None:
        """Branches that no rank takes are left out."""
        parts: list[tuple[str, list[Line]]] = []
        for branch in node.branches:
            if not any(statement in self.facts.ran for statement in branch.body):
                continue
            start = branch.condition.span.end if branch.condition else branch.span.start
            if branch.condition is None and not parts:
                self._inline(branch.body, start)
                return
            head = "else:"
            if branch.condition is not None:
                word = "elif" if parts else "if"
                head = f"{word} {self.writer.text(branch.condition)}:"
            with self._body() as inner:
                self.block(branch.body, start)
            parts.append((head, inner))
        self.lines.append(Line(parts=parts))

    # ------------------------------------------------------------------ calls

    def _call(self, node: ast.Call, handle: ast.Expr | None) -> None:
        phase = self.parallel.phase if self.parallel else ""
        operation = self.calls.builtin(node)
        if operation is None:
            self._own_call(node, phase)
        elif operation.kind.is_local:
            if phase in ("", "local"):
                self.put(self.calls.local(node, operation))
        elif phase == "start" and self.parallel:
            if operation.kind.is_message:
                self._append(self.calls.message(node, operation, "batch"))
            else:
                self.parallel.works = True
                self.put(f"works.append({self.calls.collective(node, operation, 'start')})")
        elif not phase:
            form = "start" if handle is not None else "run"
            is_message = operation.kind.is_message
            write = self.calls.message if is_message else self.calls.collective
            text = write(node, operation, form)
            self.put(self.handles.bind(handle, text, self.writer) if handle else text)

    def _append(self, message: str) -> None:
        assert self.parallel is not None
        self.parallel.messages = True
        self.put(f"messages.append({message})", message=message)

    def _own_call(self, node: ast.Call, phase: str) -> None:
        """A pattern or an extern of the file."""
        assert isinstance(node.func, ast.Name)
        definition = self.writer.module.symbols[node.func.id]
        if isinstance(definition.node, ast.Extern):
            if phase in ("", "local"):
                self.put(self.signatures.extern_call(definition, node, self.writer))
            return
        takes_group = any(p.target.id == "group" for p in definition.node.params)
        given = None if takes_group else _keyword(node, "group")
        text = self.signatures.pattern_call(definition, node, self.calls.group(given), self.writer)
        if not phase:
            self.put(text)
        else:
            self._branch(lambda: self.put(text))

    def _transfer(self, node: ast.Transfer, handle: ast.Expr | None) -> None:
        """Both halves of a transfer, each on its own rank, or a local copy."""
        phase = self.parallel.phase if self.parallel else ""
        source, target = node.source, node.target
        if source.rank is None or target.rank is None:
            if phase in ("", "local"):
                self.put(self.calls.arrow(node))
            return
        if phase in ("local", "wait"):
            return
        tag = _keyword(node, "tag")
        tagged = self.writer.text(tag) if tag is not None else ""
        parts: list[tuple[str, list[Line]]] = []
        for place, own, peer in (
            (source, source.rank, target.rank),
            (target, target.rank, source.rank),
        ):
            if place.value not in self.facts.kinds:  # no rank comes to this half
                continue
            with self._body() as inner:
                at = Where("group", self.writer.text(peer))
                self._half(node, place, at, tagged, handle)
            word = "elif" if parts else "if"
            parts.append((f"{word} rank == {self.writer.text(own, COMPARE + 1)}:", inner))
        self.lines.append(Line(parts=parts))

    def _half(
        self, node: ast.Transfer, place: ast.Place, at: Where, tag: str, handle: ast.Expr | None
    ) -> None:
        sends, tensor = place is node.source, self.writer.text(place.value)
        op = _keyword(node, "op") if not sends else None
        if op is not None:
            self.put(f"incoming = {self.calls.empty_like(place.value)}", defines="incoming")
        moved = tensor if op is None else "incoming"
        if self.parallel is not None:
            self._append(self.calls.moved(sends, moved, at, tag, "batch"))
        elif handle is not None:
            text = self.calls.moved(sends, moved, at, tag, "start")
            self.put(self.handles.bind(handle, text, self.writer))
        else:
            self.put(self.calls.moved(sends, moved, at, tag, "run"))
        if op is None:
            return
        added = self.writer.text(op)
        if self.parallel is None:
            into = self.writer.text(place.value, ATOM)
            self.put(self.calls.accumulated(into, "incoming", added))
        else:
            self.parallel.accumulated.append(added)
            inside = self.names.since(self.parallel.depth) & set(Line(added).words())
            self.parallel.varied |= bool(inside)
            self.put(f"received.append(({tensor}, incoming, {added}))")

    # --------------------------------------------------------------- parallel

    def _parallel(self, node: ast.Parallel) -> None:
        if self.parallel is not None:  # one inside another only adds children
            self._children(node)
            return
        here = Parallel("start", self.names.depth)
        starts = self._phase(here, node, "start")
        local, waits = (self._phase(here, node, phase) for phase in ("local", "wait"))
        self._put_accumulations_first(here, starts)
        definitions = [line for line in starts if line.defines]
        listed = [line.message for line in starts if line.message]
        alone = not (local or waits or here.works)
        if len(definitions) + len(listed) == len(starts) and not here.accumulated:
            above = [comment for line in starts if line.message for comment in _comments(line)]
            self.lines += definitions
            self._issue(", ".join(listed), alone=alone, works=here.works)
            self.lines[-1].above = above
        else:
            if here.messages:
                self.put("messages = []")
            if here.works:
                self.put("works = []")
            if here.accumulated:
                self.put("received = []")
            self.lines += starts
            if here.messages:
                self._issue("*messages", alone=alone, works=here.works)
        self.lines += local
        if not alone:
            self.put(f"{self.helpers.use('wait_all')}(works)")
        self.lines += waits
        if here.accumulated:
            self._accumulations(here)

    def _issue(self, messages: str, *, alone: bool, works: bool) -> None:
        """Start a batch of messages, and wait for it if nothing else is to be done meanwhile."""
        if alone:
            self.put(f"{self.helpers.use('exchange')}({messages})")
        else:
            start = self.helpers.use("start")
            self.put(f"works {'+=' if works else '='} {start}({messages})")

    def _phase(self, here: Parallel, node: ast.Parallel, phase: str) -> list[Line]:
        here.phase = phase
        self.parallel = here
        with self._body() as found:
            self._children(node)
        self.parallel = None
        return prune(found)

    def _children(self, node: ast.Parallel) -> None:
        if node.iterable is None:
            self._inline(node.body, node.span.start)
        else:
            self._for(node.targets, node.iterable, node.body)

    def _branch(self, write: Callable[[], None]) -> None:
        """A child of several statements, in a thread of its own."""
        assert self.parallel is not None
        if self.parallel.phase != "start":
            return
        here, self.parallel = self.parallel, None
        with self._body() as inner:
            write()
        self.parallel = here
        if not prune(inner):
            return
        here.works = True
        words = {word for line in inner for word in line.words()}
        frozen = [f"{name}={name}" for name in sorted(self.names.since(here.depth) & words)]
        self.lines.append(Line(parts=[(f"def branch({', '.join(frozen)}):", inner)]))
        self.put(f"works.append({self.helpers.use('Branch')}(branch))")

    def _put_accumulations_first(self, here: Parallel, lines: list[Line]) -> None:
        """One op for all of a block is named once, behind it."""
        if not here.accumulated or not here.has_one_op:
            return
        (op,) = set(here.accumulated)
        for line in lines:
            line.text = line.text.replace(f", incoming, {op}))", ", incoming))")
            for _, body in line.parts:
                self._put_accumulations_first(here, body)

    def _accumulations(self, here: Parallel) -> None:
        op = here.accumulated[0] if here.has_one_op else "how"
        targets = "into, incoming" if here.has_one_op else "into, incoming, how"
        text = self.calls.accumulated("into", "incoming", op)
        self.lines.append(Line(parts=[(f"for {targets} in received:", [Line(text)])]))


def _comments(line: Line) -> list[str]:
    return [*line.above, *([line.beside] if line.beside else [])]


def _keyword(node: ast.Call | ast.Transfer, name: str) -> ast.Expr | None:
    return next((keyword.value for keyword in node.keywords if keyword.name == name), None)
