"""A group, a mesh or a `let` that nothing uses (CL503).

The name is bound and never said again. For a group that is more than untidy: each `group` line is a
communicator, which all ranks create and which costs memory and time at the start. Mostly a
`group=` was forgotten, and the operation runs on all ranks instead of some.

Say it where it is meant, or remove the line. The axes of a mesh belong together: a mesh is reported
if none of them is used. A name that begins with `_` is not reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.hygiene.bindings import Binding, Kind, unused
from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Label, Severity
from commlang.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.resolve.modules import Module

RULE = Rule(
    "CL503",
    "unused-name",
    Severity.WARNING,
    invalid=(
        """\
pattern main(x: float32[n], n = 8):
    group front = ranks[:2]  # CL503
    if rank < 2:
        scale(x, 2)
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], n = 8):
    group front = ranks[:2]
    if rank in front:
        all_reduce(x, group=front)
""",
        """\
pattern main(x: float32[n], n = 8):
    mesh node = 2, local = 2
    all_reduce(x, group=local)
""",
    ),
)

_KINDS = frozenset({Kind.GROUP, Kind.MESH, Kind.LET, Kind.FUNCTION})


def check(module: Module) -> Iterator[Diagnostic]:
    """One finding per name, and per mesh."""
    for pattern in module.definitions():
        if isinstance(pattern, ast.Pattern):
            found = unused(pattern, _KINDS)
            axes = [binding.node for binding in found if binding.kind is Kind.MESH]
            for binding in found:
                if binding.kind is not Kind.MESH:
                    message = f"{binding.kind} `{binding.name}` is never used"
                    yield _report(module, binding, message)
                elif _idle(binding, axes):
                    yield _report(module, binding, "no axis of this mesh is used")


def _idle(binding: Binding, unused_axes: list[ast.Node]) -> bool:
    """Whether this is the first axis of a mesh of which none is used."""
    mesh = binding.node
    assert isinstance(mesh, ast.Mesh)
    first = mesh.axes[0].span == binding.span
    return first and unused_axes.count(mesh) == len(mesh.axes)


def _report(module: Module, binding: Binding, message: str) -> Diagnostic:
    labels = (Label(module.source, binding.span),)
    hint = "remove the line, or say the name where it is meant"
    return Diagnostic(RULE.code, message, labels, (), hint, RULE.severity)
