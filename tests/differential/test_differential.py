"""The checker's verdicts for gloo against real gloo ranks, on random patterns."""

from __future__ import annotations

import re
import subprocess
import sys
from random import Random

import pytest
import torch

from tests.differential import trial as trials
from tests.differential.contracts import contracts
from tests.differential.generate import Pattern
from tests.differential.memory import initial
from tests.differential.model import Model, Stuck, expected
from tests.differential.pool import End, Outcome
from tests.differential.script import scripts
from tests.differential.trial import load, run_trial
from tests.differential.verdict import Claim

DEADLINE_S = 400

RING = """\
pattern main(x: int32[n], y: int32[n], n = 3):
    temp inbox: like x
    parallel:
        send(x, dst=ranks.next)
        sequence:
            recv(inbox, src=ranks.prev)
            inbox -> y, op=max
    reduce(x, dst=1)
"""


def _run(*arguments: str) -> str:
    """The output of the script, which has to find that checker and ranks agree."""
    command = [sys.executable, "-m", "tests.differential.run", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=DEADLINE_S, cwd=trials.ROOT, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.timeout(DEADLINE_S + 30)
@pytest.mark.parametrize("count", [100, pytest.param(400, marks=pytest.mark.slow)])
def test_what_the_checker_says_is_what_real_ranks_do(count: int) -> None:
    shown = _run("--count", str(count), "--seed", "0", "--jobs", "3")
    total = {
        m[1]: int(m[2].replace(",", "")) for m in re.finditer(r"^  (.+?) {2,}([\d,]+)", shown, re.M)
    }
    run = total["run"]
    assert run >= 0.95 * count
    assert total["checker and ranks differ"] == 0
    assert total["hangs -> hung"] + total.get("hangs -> failed", 0) >= 0.25 * run
    assert total["ends -> ended"] == total["values compared"] >= 0.5 * run
    assert total["values compared (Executor)"] >= 0.05 * count
    assert total["with rooted collectives"] >= 0.15 * run
    assert total.get("said: depends", 0) <= 0.05 * run
    assert all(total[f"world {world}"] >= 0.05 * count for world in range(2, 7))
    assert total["size: large (16 KiB and more)"] >= 0.05 * count


# ------------------------------------------------------------------- the yardstick itself


class Ranks:
    """Stands in for real ranks: they end as told, with what the model says, plus an error."""

    def __init__(self, end: End, error: int = 0) -> None:
        self.end = end
        self.error = error
        self.still_s = 0.0
        self.runs = 0

    def run(self, parts: object, seed: int = 0, text: str = "") -> Outcome:
        self.runs += 1
        try:
            tensors = expected(parts, seed)[0]  # pyright: ignore[reportArgumentType]
        except Stuck:
            tensors = []
        for of_rank in tensors:
            of_rank["y"][-1] += self.error
        data = [
            {n: t.view(torch.uint8).numpy().tobytes() for n, t in of_rank.items()}
            for of_rank in tensors
        ]
        return Outcome(self.end, data, [])


def _seed(claim: Claim) -> int:
    """A small pattern of which the checker says that."""
    for seed in range(200):
        pattern = Pattern(seed)
        if pattern.large:
            continue
        found = run_trial(seed, lambda _: Ranks(End.ENDED))  # pyright: ignore[reportArgumentType]
        if found.verdict.claim is claim and "y[0]" in found.text:
            return seed
    raise AssertionError(claim)


def test_a_wrong_verdict_is_seen() -> None:
    sound, hanging = _seed(Claim.ENDS), _seed(Claim.HANGS)
    cases = [
        (sound, Ranks(End.ENDED), ""),
        (sound, Ranks(End.HUNG), "said to end, hung"),
        (sound, Ranks(End.FAILED), "said to end, failed"),
        (sound, Ranks(End.ENDED, error=1), "y element"),
        (hanging, Ranks(End.HUNG), ""),
        (hanging, Ranks(End.FAILED), ""),
        (hanging, Ranks(End.ENDED), "said to hang, but ended"),
    ]
    for seed, ranks, wanted in cases:
        said = run_trial(seed, lambda _, ranks=ranks: ranks).wrong  # pyright: ignore
        assert bool(said) == bool(wanted), (seed, ranks.end, said)
        assert wanted in "".join(said)
        assert ranks.runs >= 1


def test_a_seed_is_one_pattern() -> None:
    assert Pattern(17).text == Pattern(17).text
    assert len({Pattern(seed).text for seed in range(50)}) == 50


def test_the_model_knows_what_is_left_and_what_is_not_defined() -> None:
    parts = scripts(load(RING, 3))
    tensors, known = expected(parts)
    start = [initial(rank, "x", 3, "int32") for rank in range(3)]
    own = [initial(rank, "y", 3, "int32") for rank in range(3)]
    for rank in range(3):
        assert tensors[rank]["y"].tolist() == torch.maximum(start[rank - 1], own[rank]).tolist()
        assert known[rank]["y"].all()
    assert tensors[1]["x"].tolist() == torch.stack(start).sum(0).tolist()
    assert [bool(known[rank]["x"].any()) for rank in range(3)] == [False, True, False]
    with pytest.raises(Stuck):
        Model(scripts(load("pattern main(x: int32[2]):\n    recv(x, src=ranks.next)\n", 2)))


def test_contracts_are_found_by_value() -> None:
    for seed in range(100):
        pattern = Pattern(seed)
        if pattern.n < 4 or pattern.large or pattern.faulty:
            continue
        lines = contracts(pattern, scripts(load(pattern.text, pattern.world)), Random(0))
        for line in lines:
            assert re.fullmatch(r"ensure y\[\d+\] @ \d == (\w+\()?old\([xy]\)\[\d+\] @ .+", line)
        if len(lines) == 3:
            return
    raise AssertionError("no contracts")
