"""What each rank does in the tests of the Executor's externs, failures and threads.

Scenarios as in `executor_work`.
"""

from __future__ import annotations

import contextlib
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

import commlang
from commlang.errors import CommlangError
from commlang.execute.executor import Executor
from tests.execute.executor_work import HALVES, PATIENT, RING, SHORT, joined, said, tell, wait_for

if TYPE_CHECKING:
    from pathlib import Path

# ----------------------------------------------------------------- externs

EXTERN = """\
extern step(x: update float32[m, 2], k: int, y: read float32[2])

pattern f(x: float32[4, 2], y: float32[2]):
    step(x[1:3], 7, y)
    all_reduce(x)
"""


def externs(rank: int, size: int, path: Path) -> list[Any]:
    plan = commlang.loads(EXTERN).plan(world=size)
    found: list[Any] = []

    def step(x: torch.Tensor, k: int, y: torch.Tensor) -> None:
        found.append((tuple(x.shape), k, tuple(y.shape)))
        x += k + y

    with joined(rank, size, path):
        found.append(said(lambda: Executor(plan)))
        found.append(said(lambda: Executor(plan, externs={"stop": step})))
        x = torch.zeros(4, 2)
        with Executor(plan, externs={"step": step}) as ex:
            ex.run(x=x, y=torch.tensor([1.0, 2.0]))
        found.append(x.tolist())
        with Executor(plan, stand_in=True) as ex:
            ex.run(x=x)
    return found


def extern_raises(rank: int, size: int, path: Path) -> list[str]:
    """On rank 1; the others are told by their connections, the Executor runs no more."""
    text = EXTERN.replace("    all_reduce(x)", "    group g = ranks[:]\n    all_reduce(x, group=g)")

    def step(x: torch.Tensor, k: int, y: torch.Tensor) -> None:
        if rank == 1:
            raise LookupError("no such weight")

    found: list[str] = []
    with joined(rank, size, path):
        plan = commlang.loads(text).plan(world=size)
        with contextlib.suppress(CommlangError), Executor(plan, externs={"step": step}) as ex:
            try:
                ex.run()
            except CommlangError as error:
                found.append(str(error))
                found.append(type(error.__cause__).__name__)
                found.append(said(ex.run))
                raise
        found.append(said(ex.__enter__))
        total = torch.ones(1)
        dist.all_reduce(total)  # the caller's group was not touched
        found.append(str(total.item()))
    return found


def raises_between(rank: int, size: int, path: Path) -> list[str]:
    """Rank 0 leaves the block between two runs; those who run again are told at once."""
    found: list[str] = []
    with joined(rank, size, path):
        plan = commlang.loads(HALVES).plan(world=size)
        with contextlib.suppress(ZeroDivisionError, CommlangError), Executor(plan) as ex:
            ex.run()
            if rank == 0:
                raise ZeroDivisionError
            try:
                ex.run()
            except CommlangError as error:
                found.append(str(error))
                raise
        total = torch.ones(1)
        dist.all_reduce(total)
        found.append(str(total.item()))
    return found


PENDING = """\
pattern f(x: float32[4], y: float32[2], z: float32[2]):
    group g = ranks[:]
    h = async all_reduce(x, group=g)
    parallel:
        send(y, dst=ranks.next)
        recv(z, src=ranks.prev)
    wait(h)
"""


def times_out(rank: int, size: int, path: Path) -> list[str]:
    """Rank 1 does not run: the others name their statement, and nobody hangs on the way out."""
    plan = commlang.loads(PENDING).plan(world=size)
    found: list[str] = []
    with joined(rank, size, path):
        dist.barrier()
        hasty = dist.new_group(timeout=timedelta(seconds=SHORT))
        # Entry is patient; so are the operations on the subgroup, of which one stays pending.
        ex = Executor(plan, group=hasty, timeout=timedelta(seconds=PATIENT))
        with contextlib.suppress(CommlangError), ex:
            if rank == 1:
                for other in (0, 2):
                    wait_for(path, f"failed {other}")
                raise CommlangError
            try:
                ex.run()
            except CommlangError as error:
                found.append(str(error))
                tell(path, f"failed {rank}")
            found.append(said(ex.run))
        total = torch.ones(1)
        dist.all_reduce(total)  # another group is as it was
        found.append(str(total.item()))
        if rank != 1:
            found.append(said(Executor(plan, group=hasty).__enter__))
    return found


def never_runs(rank: int, size: int, path: Path) -> list[str]:
    """Rank 3 enters and does not call run; nothing runs on that group any more, and says so."""
    plan = commlang.loads("pattern f(x: float32[4]):\n    all_reduce(x)\n").plan(world=size)
    found: list[str] = []
    with joined(rank, size, path):
        dist.barrier()
        hasty = dist.new_group(timeout=timedelta(seconds=SHORT))
        patient = timedelta(seconds=PATIENT)
        with Executor(plan, group=hasty, timeout=patient) as other:
            ex = Executor(plan, group=hasty, timeout=patient)
            with ex:
                if rank == 3:
                    for failed in range(3):
                        wait_for(path, f"failed {failed}")
                    return []
                run = ex.start()
                found.append(said(run.wait))
                tell(path, f"failed {rank}")
                found.append(said(ex.start().wait))
            found.append(said(other.run))
            found.append(said(Executor(plan, group=hasty).__enter__))
    return found


# ----------------------------------------------------------------- threads


def threads(rank: int, size: int, path: Path) -> list[str]:
    """A second thread is refused on a group that a plan runs on, and so is an extern."""
    plan = commlang.loads(EXTERN).plan(world=size)
    ring = commlang.loads(RING).plan(world=size)
    found: list[str] = []
    with joined(rank, size, path), Executor(ring) as other:

        def step(x: torch.Tensor, k: int, y: torch.Tensor) -> None:
            found.append(said(other.run))
            helper = threading.Thread(target=lambda: found.append(said(other.run)))
            helper.start()
            helper.join()

        with Executor(plan, externs={"step": step}) as ex:
            ex.run()
        other.run()
    return found
