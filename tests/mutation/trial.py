"""One mutant: whether it still does what the pattern did, on real ranks, and what the checker says.

Behaviour is what a run leaves in the tensors that were defined before the fault; a run that hangs,
fails or crashes has changed too. It is never judged by looking at the mutant.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from commlang.checks import check_program
from commlang.diagnostics import Severity
from commlang.errors import PatternError
from commlang.program import build
from commlang.resolve.check import check_all
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.syntax import ast
from tests.differential.model import expected
from tests.differential.pool import End, Outcome, RankPool
from tests.differential.script import scripts
from tests.differential.verdict import GLOO
from tests.execute.test_library_on_gloo import name_of, values_for

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from commlang.program import Program
    from commlang.resolve.modules import Definition
    from tests.differential.script import Script
    from tests.mutation.faults import Mutant

WORLDS = (4, 3, 2, 8)
_RUNS = 2
"""Worlds in which a pattern and its mutants run: the first that the pattern takes."""
_SEEDS = (1, 2)


class Contract(StrEnum):
    """How much a pattern's contract can say."""

    WHOLE = "patterns with a contract"
    PARTIAL = "patterns with a contract, parts of whose results are made by compute or externs"
    NONE = "patterns without a contract"


class Effect(StrEnum):
    """What a fault does."""

    REFUSED = "refused before it could run"
    CHANGED = "changed"
    EXTERNS = "only externs saw it"
    SAME = "the same"


@dataclass(slots=True)
class Result:
    """What came of a mutant."""

    pattern: str
    mutant: Mutant
    contract: Contract
    effect: Effect
    codes: tuple[str, ...]
    """Errors of the checker."""
    why: str = ""

    @property
    def killed(self) -> bool:
        return bool(self.codes)


@dataclass(slots=True)
class _Original:
    """A pattern in one world, and what it leaves for each seed."""

    world: int
    values: dict[str, Any]
    shapes: list[dict[str, Any]]
    tensors: list[list[dict[str, torch.Tensor]]]
    known: list[list[dict[str, torch.Tensor]]]
    seen: list[list[Counter[Any]]]


@dataclass(slots=True)
class Subject:
    """A pattern of the library, run before its mutants are."""

    definition: Definition
    pool_of: Callable[[int], RankPool]
    originals: list[_Original] = field(default_factory=list[_Original])
    made_outside: bool = False
    """Whether some data are what compute or an extern makes of others."""

    def __post_init__(self) -> None:
        for world in WORLDS:
            if len(self.originals) == _RUNS:
                break
            values = values_for(self.definition, world)
            try:
                program = build(self.definition, world, values)
            except PatternError as error:
                if {d.code for d in error.diagnostics} != {"CL124"}:  # a `require`
                    raise
                continue
            assert not _errors(program), self.name
            self.originals.append(self._original(program, world, values))
        assert self.originals

    @property
    def name(self) -> str:
        return name_of(self.definition)

    @property
    def contract(self) -> Contract:
        if not any(isinstance(s, ast.Ensure) for s in self.definition.node.body):
            return Contract.NONE
        return Contract.PARTIAL if self.made_outside else Contract.WHOLE

    def _original(self, program: Program, world: int, values: dict[str, Any]) -> _Original:
        parts = scripts(program)
        self.made_outside = self.made_outside or any(map(_makes_data, parts))
        seen: list[list[Counter[Any]]] = []
        tensors: list[Any] = []
        known: list[Any] = []
        for seed in _SEEDS:
            outcome = self.pool_of(world).run(parts, seed)
            assert outcome.end is End.ENDED, f"{self.name}: {outcome}"
            wanted, defined = expected(parts, seed)
            assert not _difference(parts, outcome, wanted, defined), self.name
            tensors.append(wanted)
            known.append(defined)
            seen.append([Counter(calls) for calls in outcome.seen])
        return _Original(world, values, [_shapes(p) for p in parts], tensors, known, seen)

    def judge(self, mutant: Mutant) -> Result:
        """Check a mutant and run it, if there is anything to run."""
        node = self.definition.node
        try:
            module = load_module(Source(mutant.text, self.definition.module.source.path))
            refused = {d.code for d in check_all(module)}
            if refused:
                return self._result(mutant, Effect.REFUSED, refused)
            programs = [build(module.symbols[node.name], o.world, o.values) for o in self.originals]
        except PatternError as error:
            return self._result(mutant, Effect.REFUSED, {d.code for d in error.diagnostics})
        codes = {code for program in programs for code in _errors(program)}
        effect, why = Effect.SAME, ""
        for original, program in zip(self.originals, programs, strict=True):
            effect, why = self._run(original, scripts(program))
            if effect is not Effect.SAME:
                break
        return self._result(mutant, effect, codes, why)

    def _result(self, mutant: Mutant, effect: Effect, codes: set[str], why: str = "") -> Result:
        return Result(self.name, mutant, self.contract, effect, tuple(sorted(codes)), why)

    def _run(self, original: _Original, parts: list[Script]) -> tuple[Effect, str]:
        if [_shapes(part) for part in parts] != original.shapes:
            return Effect.CHANGED, "other tensors"
        saw = ""
        for number, seed in enumerate(_SEEDS):
            outcome = self.pool_of(original.world).run(parts, seed)
            if outcome.end is not End.ENDED:
                return Effect.CHANGED, f"world {original.world}: {outcome.end}"
            wanted, known = original.tensors[number], original.known[number]
            why = _difference(parts, outcome, wanted, known)
            if why:
                return Effect.CHANGED, f"world {original.world}: {why}"
            if [Counter(calls) for calls in outcome.seen] != original.seen[number]:
                saw = f"world {original.world}: externs were called otherwise"
        return (Effect.EXTERNS if saw else Effect.SAME), saw


def _errors(program: Program) -> set[str]:
    return {d.code for d in check_program(program, GLOO) if d.severity is Severity.ERROR}


def _makes_data(script: Script) -> bool:
    return any(
        step.kind in ("COMPUTE", "EXTERN") and region.access != "read"
        for step in script.steps()
        for region in step.regions
    )


def _shapes(script: Script) -> dict[str, Any]:
    return {
        name: (shape, script.buffers[number][0]) for name, (number, shape) in script.tensors.items()
    }


def _difference(parts: list[Script], outcome: Outcome, wanted: Any, known: Any) -> str:
    """The first element that is not as it was, in words."""
    for rank, part in enumerate(parts):
        for name, (number, _) in part.tensors.items():
            got = outcome.tensor(rank, name, part.buffers[number][0])
            bad = ((got != wanted[rank][name]) & known[rank][name]).nonzero().reshape(-1)
            if len(bad):
                at = int(bad[0])
                return f"rank {rank}: {name}[{at}] is {got[at]}, was {wanted[rank][name][at]}"
    return ""
