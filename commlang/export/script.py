"""A checked pattern as one Python file for all ranks, which needs torch and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from commlang.checks import check_program
from commlang.diagnostics import Severity
from commlang.errors import PatternError
from commlang.expand.run import MAX_EVENTS
from commlang.export.expressions import CannotExport
from commlang.export.facts import CHUNKS, Facts, observe
from commlang.export.functions import extern_function, pattern_function
from commlang.export.helpers import NAMES, Helpers
from commlang.export.main import Constants, header, main_function, subgroups
from commlang.export.names import RESERVED, free_name
from commlang.program import Program
from commlang.syntax import ast

if TYPE_CHECKING:
    from commlang.plan import Plan
    from commlang.resolve.modules import Definition

PROOFS = ("matched", "agreeing collectives", "deadlock-free under rendezvous")


def export_python(
    source: Plan | Program,
    *,
    command: str = "script.py",
    max_events: int = MAX_EVENTS,
    checked: bool = False,
) -> str:
    """The text of a script that does what a plan or a program does, on every rank.

    `command` is the name of the file, for its own instructions. A program that is not `checked`
    yet is checked first, by what all backends honour. Raises PatternError with all that
    is wrong with a program, and CommlangError where something has no form in a script.
    """
    if isinstance(source, Program):
        program, proofs = source, PROOFS
        findings = () if checked else check_program(program)
        found = [d for d in findings if d.severity is Severity.ERROR]
        if found:
            raise PatternError(found)
    else:
        program, proofs, max_events = source.program(), source.proofs, source.max_events
    text = _Script(program, observe(program, max_events)).text(command, proofs)
    try:
        compile(text, command, "exec")
    except (SyntaxError, RecursionError) as error:  # as Python has it for 21 loops in one another
        raise CannotExport(f"cannot export {program.name}: Python says: {error.args[0]}") from None
    return text


class _Script:
    def __init__(self, program: Program, facts: Facts) -> None:
        self.program, self.facts = program, facts
        self.groups = subgroups(program, facts)
        self.helpers = Helpers(grouped=bool(self.groups))
        if any(_slices_chunks(node, facts) for node in facts.kinds):
            self.helpers.use("Chunks")
        taken: set[str] = set(RESERVED | NAMES)
        entry = program.definition
        self.patterns = [entry, *(p for p in facts.patterns if p is not entry)]
        self.functions: dict[Definition, str] = {}
        for definition in (*self.patterns, *facts.externs):
            self.functions[definition] = free_name(_name(definition), taken)
            taken.add(self.functions[definition])
        self.taken = frozenset(taken)

    def text(self, command: str, proofs: tuple[str, ...]) -> str:
        shared = (self.functions, self.taken, self.facts, self.helpers)
        patterns = [pattern_function(definition, *shared) for definition in self.patterns]
        constants = Constants(self.program, self.facts, self.helpers)
        main = main_function(self.program, self.functions, self.taken, constants, self.groups)
        externs = [extern_function(d, self.functions[d]) for d in self.facts.externs]
        parts = [
            *externs,
            *patterns,
            *([self.helpers.text()] if self.helpers.text() else []),
            *main,
        ]
        top = [
            header(self.program, proofs, command, externs=bool(externs), groups=bool(self.groups)),
            _imports(self.helpers),
            constants.text(self.groups),
        ]
        return "\n\n".join(top) + "\n\n\n" + "\n\n\n".join(parts) + "\n"


def _imports(helpers: Helpers) -> str:
    wanted = {"Branch": "import threading", "compute": "import time"}
    plain = ["import argparse", "import os", *(t for n, t in wanted.items() if helpers.uses(n))]
    more = ["from datetime import timedelta"]
    more += ["from fractions import Fraction"] if helpers.uses("Fraction") else []
    return "\n".join([*plain, *more, "", "import torch", "import torch.distributed as dist"])


def _slices_chunks(node: ast.Node, facts: Facts) -> bool:
    """Whether a node takes several chunks of a tensor at once."""
    if not isinstance(node, ast.Index) or CHUNKS not in facts.of(node.base):
        return False
    return any(isinstance(sub, ast.Slice) for sub in node.subs)


def _name(definition: Definition) -> str:
    """`main` goes by its file's name."""
    name = definition.node.name
    if name != "main":
        return name
    stem = Path(definition.module.source.path).stem.replace("-", "_").replace(".", "_")
    return stem if stem.isidentifier() else "pattern"
