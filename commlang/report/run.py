"""The report of a run: what was proven, how long each statement took, whether contracts held."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from commlang.report.predict import Prediction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.execute.contract import Failure
    from commlang.execute.measure import Timing
    from commlang.execute.session import Outcome, RankResult
    from commlang.execute.settings import Settings
    from commlang.plan import Plan

VERSION = 1

# Operations that move (n - 1) / n of their size over each rank's link, as nccl-tests reckons it:
# https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
_ALL_BUT_ONE = frozenset(
    {
        "all_gather",
        "all_gather_into_tensor",
        "all_gather_single",
        "reduce_scatter",
        "reduce_scatter_tensor",
        "reduce_scatter_single",
        "all_to_all",
        "all_to_all_single",
        "gather",
        "scatter",
    }
)


def bus_factor(operation: str, ranks: int) -> float:
    """What makes algbw the bandwidth of the busiest link: busbw / algbw."""
    if operation == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if operation in _ALL_BUT_ONE else 1.0


class Statement(BaseModel):
    """One statement over all ranks and iterations.

    Times are seconds per call: the median over all calls of all ranks and the largest. `size` is
    bytes per call, `algbw` size / median time and `busbw` algbw times the operation's bus factor,
    in GB/s (10**9), None where nothing moves.
    """

    path: str
    line: int
    column: int
    text: str
    operation: str
    ranks: int
    calls: int
    size: int
    median: float
    max: float
    algbw: float | None
    busbw: float | None


class ContractFailure(BaseModel):
    """Where an `ensure` does not hold: see `commlang.execute.contract.Failure`; `text` says it all.

    Numbers that JSON does not have, complex ones say, are given as text.
    """

    rank: int
    tensor: str | None
    index: list[int] | None
    expected: bool | int | float | str | None
    got: bool | int | float | str | None
    wrong: int
    elements: int
    text: str


class Contract(BaseModel):
    """One `ensure` over all ranks; `failures` says where it did not hold.

    `unchecked` says why some rank could not tell, if none found it to fail.
    """

    where: str
    text: str
    ok: bool
    unchecked: str | None = None
    failures: list[ContractFailure]


class Totals(BaseModel):
    """Whole runs of the pattern, in seconds: over iterations, of the slowest rank each."""

    iterations: int
    median: float
    min: float
    max: float
    bytes_sent: int


class HostTopology(BaseModel):
    """A host of a run on CUDA: see `commlang.execute.topology.Topology`."""

    host: str
    gpus: list[str]
    links: dict[str, int]
    infiniband: list[str]
    network: list[str]


class RunReport(BaseModel):
    """Everything that a run tells, for `--json`.

    `externs` holds the Python function of each extern that is called, None for one that only took
    the time of its cost.
    """

    version: Literal[1] = VERSION
    commlang: str
    torch: str
    pattern: str
    path: str
    digest: str
    fingerprint: str
    world: int
    backend: str
    device: str
    hosts: list[str]
    topology: list[HostTopology] = []
    seed: int
    parameters: dict[str, Any]
    externs: dict[str, str | None]
    events: int
    proofs: list[str]
    statements: list[Statement]
    totals: Totals
    contracts: list[Contract]
    prediction: Prediction | None = None
    ok: bool


def make_report(plan: Plan, outcome: Outcome, settings: Settings) -> RunReport:
    """The report of a run, from what its ranks found."""
    totals = [r.times.totals for r in outcome.ranks]
    slowest = [max(times) for times in zip(*totals, strict=True)]
    return RunReport(
        commlang=plan.commlang,
        torch=outcome.torch,
        pattern=plan.pattern,
        path=plan.path,
        digest=plan.digest,
        fingerprint=plan.fingerprint,
        world=plan.world,
        backend=outcome.backend,
        device=outcome.device.split(":")[0],
        hosts=sorted({r.host for r in outcome.ranks}),
        topology=[HostTopology(**asdict(r.topology)) for r in outcome.ranks if r.topology],
        seed=settings.seed,
        parameters=plan.parameters,
        externs=_externs(plan, dict(settings.externs)),
        events=plan.events,
        proofs=list(plan.proofs),
        statements=_statements(outcome.ranks),
        totals=Totals(
            iterations=len(slowest),
            median=median(slowest) if slowest else 0.0,
            min=min(slowest, default=0.0),
            max=max(slowest, default=0.0),
            bytes_sent=_bytes_sent(plan),
        ),
        contracts=_contracts(outcome.ranks),
        ok=outcome.ok,
    )


def _externs(plan: Plan, bound: dict[str, str]) -> dict[str, str | None]:
    from commlang.operations import Kind

    called = (site.name for site in plan.program().sites if site.kind is Kind.EXTERN)
    return {name: bound.get(name) for name in dict.fromkeys(called)}


def _statements(ranks: Sequence[RankResult]) -> list[Statement]:
    merged: dict[tuple[Any, ...], list[Timing]] = {}
    for result in ranks:
        for timing in result.times.statements:
            key = (*timing.where, timing.operation, timing.text)
            merged.setdefault(key, []).append(timing)
    found = [_statement(timings) for timings in merged.values()]
    files = list(dict.fromkeys(s.path for s in found))
    return sorted(
        (s for s in found if s.calls), key=lambda s: (files.index(s.path), s.line, s.column)
    )


def _statement(timings: list[Timing]) -> Statement:
    first = timings[0]
    durations = [d for timing in timings for d in timing.durations]
    middle = median(durations) if durations else 0.0
    size = max(t.size for t in timings)
    ranks = max(t.ranks for t in timings)
    moves = size > 0 and middle > 0 and ranks > 1
    algbw = size / middle / 1e9 if moves else None
    busbw = None if algbw is None else algbw * bus_factor(first.operation, ranks)
    path, line, column = first.where
    return Statement(
        path=path,
        line=line,
        column=column,
        text=first.text,
        operation=first.operation,
        ranks=ranks,
        calls=max(t.calls for t in timings),
        size=size,
        median=middle,
        max=max(durations, default=0.0),
        algbw=algbw,
        busbw=busbw,
    )


def _contracts(ranks: Sequence[RankResult]) -> list[Contract]:
    merged: dict[str, Contract] = {}
    for result in ranks:
        for found in result.contracts:
            contract = merged.setdefault(
                found.where, Contract(where=found.where, text=found.text, ok=True, failures=[])
            )
            if found.failure is not None:
                contract.ok = False
                contract.failures.append(_failure(found.failure))
            elif found.unchecked is not None and contract.unchecked is None:
                contract.unchecked = f"rank {found.rank}: {found.unchecked}"
    return list(merged.values())


def _failure(found: Failure) -> ContractFailure:
    return ContractFailure(
        rank=found.rank,
        tensor=found.tensor,
        index=None if found.index is None else list(found.index),
        expected=_number(found.expected),
        got=_number(found.got),
        wrong=found.wrong,
        elements=found.elements,
        text=str(found),
    )


def _number(value: Any) -> bool | int | float | str | None:
    plain = (
        value is None or isinstance(value, int) or (isinstance(value, float) and isfinite(value))
    )
    return value if plain else str(value)


def _bytes_sent(plan: Plan) -> int:
    """Bytes of all point-to-point messages of one run (collectives move theirs in secret)."""
    import numpy as np

    from commlang.operations import Kind

    program = plan.program()
    rows = np.flatnonzero(program.kind == Kind.SEND)
    itemsize = np.array([d.itemsize if d else 0 for d in program.site_dtype])
    if not len(rows):
        return 0
    return int((program.operands.length[program.first[rows]] * itemsize[program.site[rows]]).sum())
