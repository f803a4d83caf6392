"""What each rank does in the tests of tensors as programs have them: one function per scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

import commlang
from commlang.execute.executor import Executor
from tests.execute.executor_work import joined, said

if TYPE_CHECKING:
    from pathlib import Path

EXCHANGE = """\
pattern exchange(x: int64[n], n = 120000):
    let size(r) = n // 12 * (1 + (rank + r) % 2)
    let start(r) = sum(size(q) for q in range(r))
    let parts = [x[start(r):start(r + 1)] for r in ranks]
    all_to_all(parts, parts)
"""
BUCKET = """\
pattern bucket(x: float32[n], n = 8):
    for i in range(4):
        work[i] = async all_reduce(x.chunks(4)[i])
    wait(work)
"""
ADD = """\
pattern add(x: float32[n], y: float32[n], n = 8):
    all_reduce(x)
    x -> y, op=sum
"""
NOTE = """\
extern note(x: update float32[n])

pattern noted(x: float32[n], n = 8):
    note(x)
"""
ROW = """\
pattern row(x: float32[n, n], n = 3):
    broadcast(x[0], src=0)
"""


def exchanged_in_place(rank: int, size: int, path: Path) -> list[bool]:
    """Whether an exchange of uneven parts onto themselves brings what each rank has sent."""
    n = 120000
    plan = commlang.loads(EXCHANGE).plan(world=size, backend="gloo")

    def start(at: int, of: int) -> int:
        return sum(n // 12 * (1 + (at + r) % 2) for r in range(of))

    values = [torch.arange(n) + r * n for r in range(size)]
    wanted = [values[r][start(r, rank) : start(r, rank + 1)] for r in range(size)]
    found: list[bool] = []
    with joined(rank, size, path), Executor(plan) as ex:
        for _ in range(8):
            x = values[rank].clone()
            ex.run(x=x)
            found.append(torch.equal(x[: start(rank, size)], torch.cat(wanted)))
    return found


def inference(rank: int, size: int, path: Path) -> list[list[float]]:
    """A bucket that is made in inference mode serves outside; runs started in it are in it."""
    found: list[list[float]] = []
    with joined(rank, size, path):
        with Executor(commlang.loads(BUCKET).plan(world=size)) as ex:
            assert len(ex.actions) == 2, "the all_reduces are no bucket"
            x = torch.ones(8)
            with torch.inference_mode():
                ex.run(x=x)
            found.append(ex.run(x=x)["x"].tolist())
        with Executor(commlang.loads(ADD).plan(world=size)) as ex, torch.inference_mode():
            started = ex.start(x=torch.ones(8), y=torch.ones(8))
            found.append(started.wait()["y"].tolist())
    return found


def modes(rank: int, size: int, path: Path) -> list[tuple[bool, bool]]:
    """Whether externs of runs that were started record gradients, and are in inference mode."""
    found: list[tuple[bool, bool]] = []

    def note(_: torch.Tensor) -> None:
        found.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))

    plan = commlang.loads(NOTE).plan(world=size)
    with joined(rank, size, path), Executor(plan, externs={"note": note}) as ex:
        ex.start().wait()
        with torch.no_grad():
            started = ex.start()
        started.wait()
        with torch.inference_mode():
            started = ex.start()
        started.wait()
        ex.start().wait()
    return found


def changed(rank: int, size: int, path: Path) -> list[str]:
    """A bound tensor is transposed in place, which leaves its shape, or its memory is freed."""
    with joined(rank, size, path), Executor(commlang.loads(ROW).plan(world=size)) as ex:
        x = torch.ones(3, 3)
        ex.run(x=x)
        x.t_()
        found = [said(lambda: ex.run(x=x))]
        x.t_()
        storage = x.untyped_storage()
        room = storage.size()
        storage.resize_(0)
        found.append(said(lambda: ex.run(x=x)))
        storage.resize_(room)
        found.append(said(lambda: ex.run(x=x)))
    return found
