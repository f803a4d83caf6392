"""A pattern as a function on a process group and tensors, an extern as one to be filled in."""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

from commlang.expand.binding import handed_on
from commlang.export.blocks import Blocks
from commlang.export.comments import Comments
from commlang.export.expressions import Writer, quoted
from commlang.export.handles import Handles
from commlang.export.lines import Line, prune, rendered
from commlang.export.names import free_name
from commlang.export.signatures import Signature, Signatures
from commlang.export.wrap import wrapped
from commlang.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlang.export.facts import Facts
    from commlang.export.helpers import Helpers
    from commlang.resolve.modules import Definition


def place_of(definition: Definition, node: ast.Node) -> str:
    """`file.cl:line` of a node."""
    source = definition.module.source
    return f"{Path(source.path).name}:{source.position(node.span.start)[0]}"


def pattern_function(
    definition: Definition,
    functions: Mapping[Definition, str],
    taken: frozenset[str],
    facts: Facts,
    helpers: Helpers,
) -> str:
    """The function of a pattern."""
    signature = Signature(definition, taken)
    writer = Writer(signature.names, facts, helpers, definition.module)
    head = signature.head(writer)
    bindings = signature.bindings(writer)
    body = definition.node.body
    handles = Handles(body, signature.names, facts.ran)
    blocks = Blocks(
        writer, Signatures(definition, functions, taken), handles, Comments(definition.module)
    )
    if signature.tensors:
        blocks.device = f"{signature.python[signature.tensors[0].target.id]}.device"
    start = definition.node.doc.span.end if definition.node.doc else _first(body)
    blocks.block(body, start)
    own = [
        Line("rank = dist.get_rank(group)", defines="rank"),
        Line("world = dist.get_world_size(group)", defines="world"),
    ]
    lines = prune([*own, *bindings, *handles.declared(), *blocks.lines])
    for param in signature.tensors:
        dims = len(param.type.shape or ()) if param.type else 0
        _unpack_shape(lines, signature.python[param.target.id], dims)
    name = functions[definition]
    heading = wrapped(f"def {name}({', '.join(['group', *head])}):", 0)
    return "\n".join([*heading, *_docstring(definition), *rendered(lines, 4)])


def _unpack_shape(lines: list[Line], tensor: str, dims: int) -> None:
    """Where all sizes of a tensor are read off it, do that in one line."""
    reads = [f" = {tensor}.shape[{dim}]" for dim in range(dims)]
    for start in range(len(lines) - dims + 1):
        some = lines[start : start + dims]
        if dims > 1 and all(
            line.text.endswith(read) for line, read in zip(some, reads, strict=True)
        ):
            names = ", ".join(line.defines for line in some)
            lines[start : start + dims] = [Line(f"{names} = {tensor}.shape")]
            return


def _first(body: tuple[ast.Stmt, ...]) -> int:
    return body[0].span.start if body else 0


def _docstring(definition: Definition) -> list[str]:
    """What the pattern says of itself, and what was promised of its results."""
    node = definition.node
    paragraphs = [cleandoc(node.doc.value)] if node.doc else []
    ensured = [_as_written(definition, s) for s in node.body if isinstance(s, ast.Ensure)]
    if ensured:
        paragraphs.append("\n".join(["In the words of the pattern:", "", *ensured]))
    paragraphs.append(f"From {place_of(definition, node)}.")
    return docstring("\n\n".join(paragraphs))


def _as_written(definition: Definition, node: ast.Node) -> str:
    """The text of a statement, from the left margin."""
    source = definition.module.source
    _, column = source.position(node.span.start)
    first, *rest = source.text[node.span.start : node.span.end].split("\n")
    return "\n".join([first, *(line[column - 1 :] for line in rest)])


def docstring(text: str) -> list[str]:
    """The lines of a docstring in a function."""
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    lines = indent(f'"""{escaped}', "    ").split("\n")
    if len(lines) == 1 and len(lines[0]) <= 97:
        return [lines[0] + '"""']
    return [*(line.rstrip() for line in lines), '    """']


def extern_function(definition: Definition, name: str) -> str:
    """A function for the reader to write."""
    node = definition.node
    params = ", ".join(free_name(p.target.id, frozenset()) for p in handed_on(node.params))
    source = definition.module.source
    modes = {
        mode: [p.target.id for p in node.params if p.mode == mode]
        for mode in ("read", "write", "update")
    }
    told = [f"{mode}s {', '.join(names)}" for mode, names in modes.items() if names]
    paragraphs = [cleandoc(node.doc.value)] if node.doc else [f"The extern {node.name}."]
    if told:
        text = "; ".join(told)
        paragraphs.append(f"{text[0].upper()}{text[1:]}, in place.")
    for statement in node.body:
        if isinstance(statement, ast.Cost | ast.Assume | ast.Require):
            said = " ".join(source.text[statement.span.start : statement.span.end].split())
            paragraphs.append(f"The pattern says: {said}")
    paragraphs.append(f"From {place_of(definition, node)}.")
    lines = [*wrapped(f"def {name}({params}):", 0), *docstring("\n\n".join(paragraphs))]
    lines.append(f"    raise NotImplementedError({quoted(f'{name}: put your own work here')})")
    return "\n".join(lines)
