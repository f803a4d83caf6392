"""One trial: a random pattern, the checker's claims on it, and what real ranks did with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from commlang.execute.contract import check_definition
from commlang.program import Program, build
from commlang.resolve.check import check_all
from commlang.resolve.modules import load_module
from commlang.source import Source
from tests.differential.contracts import contracts
from tests.differential.generate import Pattern
from tests.differential.memory import initial
from tests.differential.model import expected
from tests.differential.pool import End, Outcome, RankPool
from tests.differential.script import Script, scripts
from tests.differential.verdict import Claim, Contract, Verdict, judge

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

ROOT = Path(__file__).parents[2]
PATIENT_S = 3.0
"""How long nothing moves before a run that should have ended is said to hang."""
_EXECUTED = 4
"""The Executor runs every so many of the sound patterns too."""
_AGAIN = 3
"""Runs on other data before a contract that was refuted is said to hold."""


@dataclass(slots=True)
class Trial:
    """What came of a seed; `wrong` says where the checker and the ranks differ."""

    seed: int
    pattern: Pattern
    text: str
    verdict: Verdict
    outcome: End | None = None
    values: bool = False
    """Whether what the ranks left was compared with what the model says."""
    executed: bool = False
    """Whether the same was done for what the Executor left."""
    holds: bool | None = None
    """Whether the contracts held on the ranks' data."""
    wrong: list[str] = field(default_factory=list[str])


def load(text: str, world: int) -> Program:
    """The program of a text; the generator writes no other than right ones."""
    module = load_module(Source(text, "random.cl"))
    faults = check_all(module)
    assert not faults, faults[0].render() + text
    return build(module.symbols["main"], world)


def run_trial(seed: int, pool_of: Callable[[int], RankPool]) -> Trial:
    """Write the pattern of a seed, check it, run it, compare."""
    pattern = Pattern(seed)
    text = pattern.text
    program = load(text, pattern.world)
    lines: list[str] = []
    before = judge(program)
    if before.claim is Claim.ENDS and before.race_free:
        lines = contracts(pattern, scripts(program), Random(seed))
        if lines:
            text = pattern.written(lines)
            program = load(text, pattern.world)
    trial = Trial(seed, pattern, text, judge(program, contracts=bool(lines)))
    alarms = set(trial.verdict.errors) - {"CL240"}
    if not pattern.faulty and alarms:
        trial.wrong.append(f"a false alarm: {sorted(alarms)} on a pattern that is sound")
    if trial.verdict.claim is Claim.UNSOUND:
        return trial
    _run(trial, program, pool_of(pattern.world))
    return trial


def _run(trial: Trial, program: Program, pool: RankPool) -> None:
    parts, claim = scripts(program), trial.verdict.claim
    outcome = pool.run(parts, trial.seed)
    if claim is Claim.ENDS and outcome.end is not End.ENDED:
        pool.still_s, before = PATIENT_S, pool.still_s
        outcome = pool.run(parts, trial.seed)
        pool.still_s = before
    trial.outcome = outcome.end
    if (claim is Claim.ENDS) != (not trial.verdict.refusals):
        trial.wrong.append(f"the verdict is {claim}, the findings are {trial.verdict.codes}")
    if claim is Claim.ENDS and outcome.end is not End.ENDED:
        trial.wrong.append(f"said to end, {outcome.end}: {outcome.why[-500:]}")
    if claim is Claim.HANGS and outcome.end is End.ENDED:
        trial.wrong.append("said to hang, but ended")
    if claim is Claim.ENDS and outcome.end is End.ENDED and trial.verdict.race_free:
        trial.values = _compare(trial, parts, outcome)
        if trial.seed % _EXECUTED == 0 and trial.verdict.contract is not Contract.REFUTED:
            _execute(trial, parts, pool)
        if trial.verdict.contract is not Contract.NONE:
            _contracts(trial, program, parts, outcome, pool)


def _execute(trial: Trial, parts: list[Script], pool: RankPool) -> None:
    """The Executor leaves the same, unless something is computed, which it only stands in for."""
    if any(step.kind == "COMPUTE" and step.regions for part in parts for step in part.steps()):
        return
    outcome = pool.run(parts, trial.seed, trial.text)
    if outcome.end is not End.ENDED:
        trial.wrong.append(f"the Executor: {outcome.end}: {outcome.why[-500:]}")
    else:
        trial.executed = _compare(trial, parts, outcome)


def _compare(trial: Trial, parts: list[Script], outcome: Outcome) -> bool:
    """Every element that does not depend on what temps held must be the model's."""
    tensors, known = expected(parts, trial.seed)
    for rank, of_rank in enumerate(tensors):
        for name, wanted in of_rank.items():
            got = outcome.tensor(rank, name, str(wanted.dtype).removeprefix("torch."))
            bad = ((got != wanted) & known[rank][name]).nonzero().reshape(-1).tolist()
            if bad:
                at = bad[0]
                trial.wrong.append(
                    f"rank {rank}: {name} element {at} is {got[at]}, not {wanted[at]}"
                )
                return True
    return True


def _contracts(
    trial: Trial, program: Program, parts: list[Script], outcome: Outcome, pool: RankPool
) -> None:
    """Proven ones hold on the ranks' data, refuted ones do not."""
    said = trial.verdict.contract
    trial.holds = _hold(program, parts, outcome, trial.seed)
    for again in range(1, _AGAIN + 1):
        if said is Contract.PROVEN or not trial.holds:
            break
        seed = trial.seed + 1_000_003 * again
        trial.holds = _hold(program, parts, pool.run(parts, seed), seed)
    if said is Contract.UNDECIDED:
        trial.wrong.append("contract undecided")
    elif trial.holds != (said is Contract.PROVEN):
        trial.wrong.append(f"contract {said}, but it {'holds' if trial.holds else 'does not hold'}")


def _hold(program: Program, parts: list[Script], outcome: Outcome, seed: int) -> bool:
    def old(rank: int, name: str) -> torch.Tensor:
        number, shape = parts[rank].tensors[name]
        dtype, numel = parts[rank].buffers[number]
        return initial(rank, name, numel, dtype, seed).view(shape)

    def final(rank: int, name: str) -> torch.Tensor:
        number, shape = parts[rank].tensors[name]
        return outcome.tensor(rank, name, parts[rank].buffers[number][0]).view(shape)

    results = [
        result
        for rank in range(program.world)
        for result in check_definition(
            program.definition, program.world, rank=rank, old=old, final=final
        )
    ]
    return all(result.ok for result in results)
