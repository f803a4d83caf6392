"""What each rank does in the tests of the Executor: one function per scenario.

A scenario (`executor_faults` has more) is called as `scenario(rank, size, path)` in a process of
its own; what it returns goes back to the test. `path` is a folder that its ranks share.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch
import torch.distributed as dist

import commlang
from commlang.errors import CommlangError
from commlang.execute.agreement import Agreement
from commlang.execute.executor import Executor
from commlang.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Generator
    from multiprocessing.connection import Connection

Scenario = Callable[[int, int, Path], Any]

PATIENT = 60.0
"""Seconds for what must not time out, however busy the machine is."""
SHORT = 3.0
"""Seconds for what has to time out."""

RING = """\
pattern ring(x: float32[n], y: float32[n], n = 8):
    parallel:
        send(x, dst=ranks.next)
        recv(y, src=ranks.prev)
    y -> x, op=sum
"""
COLUMNS = """\
pattern columns(grid: float32[3, n], y: float32[n, 3], n = 4):
    grid[:, 0] -> y[1]
    all_reduce(y[1])
    y[1] -> grid[:, 2]
"""
HALVES = """\
pattern halves(x: float32[n], n = 4):
    mesh outer = world // 2, inner = 2
    all_reduce(x, group=inner)
    all_reduce(x, group=outer)
"""


def lead(scenario: Scenario, path: Path, answers: list[Connection]) -> None:
    """Fork a rank for each answer: what the scenario's module imports is loaded once for all."""
    os.setsid()  # so that a test can end all of them
    fork = multiprocessing.get_context("fork")
    ranks = [
        fork.Process(target=main, args=(scenario, rank, path, answers))
        for rank in range(len(answers))
    ]
    for rank in ranks:
        rank.start()
    for answer in answers:
        answer.close()
    for rank in ranks:
        rank.join()


def main(scenario: Scenario, rank: int, path: Path, answers: list[Connection]) -> None:
    """Run a scenario and send ("ok", its result) or ("error", the traceback)."""
    size, answer = len(answers), answers[rank]
    for other in answers:
        if other is not answer:
            other.close()  # it ends with its rank
    torch.set_num_threads(1)
    try:
        answer.send(("ok", scenario(rank, size, path)))
    except BaseException:
        answer.send(("error", traceback.format_exc()))


@contextlib.contextmanager
def joined(
    rank: int, size: int, path: Path, timeout: float = PATIENT, **options: Any
) -> Generator[None]:
    dist.init_process_group(
        options.pop("backend", "gloo"),
        init_method=f"file://{path}/store",
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=timeout),
    )
    try:
        yield
    finally:
        dist.destroy_process_group()


def said(action: Any) -> str:
    """What a call is refused with; empty if it is not."""
    try:
        action()
    except CommlangError as error:
        return str(error)
    return ""


def wait_for(path: Path, name: str) -> None:
    """Until another rank has called `tell`."""
    deadline = time.monotonic() + PATIENT
    while not (path / name).exists():
        assert time.monotonic() < deadline, f"nobody told {name}"
        time.sleep(0.01)


def tell(path: Path, name: str) -> None:
    (path / name).touch()


def store_keys() -> int:
    """Keys in the store of the default group, with torch's own."""
    return dist.distributed_c10d._get_default_store().num_keys()  # pyright: ignore


# ----------------------------------------------------------------- running


def parts_of_tensors(rank: int, size: int, path: Path) -> list[list[float]]:
    """Tensors that lie in the middle of larger ones, with columns of which messages are cut."""
    grid = torch.arange(100.0)[7:19].view(3, 4)
    y = torch.zeros(50)[5:17].view(4, 3)
    plan = commlang.loads(COLUMNS).plan(world=size)
    with joined(rank, size, path), Executor(plan) as executor:
        executor.run(grid=grid, y=y)
    return [y.view(-1).tolist(), grid[:, 2].tolist(), grid[:, 1].tolist()]


def runs(rank: int, size: int, path: Path) -> list[list[float]]:
    """In place, once and again, on other tensors, on moved data and on leaves with gradients."""
    plan = commlang.loads(RING).plan(world=size)
    found: list[list[float]] = []
    with joined(rank, size, path):
        with Executor(plan) as ex:
            x = torch.full((8,), float(rank))
            result = ex.run(x=x)
            assert result["x"] is x
            assert result["y"].tolist() == [float((rank - 1) % size)] * 8
            found.append(x.tolist())
            steps = ex.steps
            ex.run(x=x)
            assert ex.steps is steps, "bound again for the same tensors"
            found.append(x.tolist())
            ex.run()
            found.append(x.tolist())
            x.data = torch.full((8,), float(rank))
            ex.run(x=x)
            assert ex.steps is not steps
            found.append(x.tolist())
            leaf = torch.full((8,), float(rank), requires_grad=True)
            ex.run(x=leaf)
            assert leaf.is_leaf
            assert leaf.grad_fn is None
            found.append(leaf.tolist())
            with torch.inference_mode():
                ex.run(x=torch.zeros(8), y=torch.zeros(8))
            ex.run(x=x)
        found.append(by_hand(rank, size))
    return found


def by_hand(rank: int, size: int) -> list[float]:
    """The same on torch.distributed alone, on the group that the Executor has left."""
    x, y = torch.full((8,), float(rank)), torch.zeros(8)
    after, before = (rank + 1) % size, (rank - 1) % size
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, x, after), dist.P2POp(dist.irecv, y, before)]
    )
    for work in works:
        work.wait()
    return (x + y).tolist()


CROSS = """
pattern cross(x: float32[2], y: float32[2], z: float32[2]):
    mesh dp = 2, tp = world // 2
    parallel:
        send(x, dst=tp.next, group=tp)
        send(x, dst=dp.next, group=dp)
        recv(y, src=dp.prev, group=dp)
        recv(z, src=tp.prev, group=tp)
"""


NEIGHBOURS = """
pattern neighbours(x: float32[2], y: float32[2], z: float32[2]):
    if rank % 2 == 0:
        send(x, dst=rank + 1)
        recv(y, src=rank + 1)
    else:
        recv(y, src=rank - 1)
        send(x, dst=rank - 1)
    fill(z, 0)
"""


def launches(rank: int, size: int, path: Path) -> list[Any]:
    """What a `parallel:` hands to batch_isend_irecv, issued as for NCCL, and what it receives."""
    plan = commlang.loads(CROSS).plan(world=size)
    batches: list[list[tuple[str, list[int]]]] = []
    real = dist.batch_isend_irecv

    def noted(messages: list[dist.P2POp]) -> list[Any]:
        told = [(op.op.__name__, dist.get_process_group_ranks(op.group)) for op in messages]
        batches.append(told)
        return real(messages)

    with joined(rank, size, path), mock.patch.object(dist, "batch_isend_irecv", noted):
        with Executor(plan) as ex:
            ex.backend = "nccl"
            found = ex.run(x=torch.full((2,), float(rank)))
        result = [batches.copy(), found["y"].tolist(), found["z"].tolist()]
        batches.clear()
        neighbours = commlang.loads(NEIGHBOURS).plan(world=size, backend="nccl")
        with Executor(neighbours) as ex:
            ex.backend = "nccl"
            found = ex.run(x=torch.full((2,), float(rank)))
        return [*result, batches, found["y"].tolist()]


def in_background(rank: int, size: int, path: Path) -> list[Any]:
    """Two runs under way, one after the other, then what they are refused and how they fail."""
    plan = commlang.loads(RING).plan(world=size)
    with joined(rank, size, path), Executor(plan) as ex:
        x = torch.full((8,), float(rank))
        first, second = ex.start(x=x), ex.start(x=x)
        future = second.get_future()
        result = second.wait(PATIENT)
        found: list[Any] = [first.is_completed(), result["x"] is x, x.tolist()]
        found.append(future.wait()["x"] is x)
        wrong = ex.start(x=torch.zeros(9))
        found.append(said(wrong.wait))
        found.append(said(wrong.get_future().wait).splitlines()[0])
        found.append(ex.run(x=x)["x"] is x)
        return found


def edges(rank: int, size: int, path: Path) -> list[Any]:
    """Empty tensors, tensors without dims, and all that gloo moves."""
    text = "pattern f(x: t[n], y: t[n], z: t, t, n = 3):\n    parallel:\n"
    text += "        send(x, dst=ranks.next)\n        recv(y, src=ranks.prev)\n"
    text += "    broadcast(z, src=1)\n"
    found: list[Any] = []
    with joined(rank, size, path):
        for name in ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32",
                     "int64", "bool", "complex64", "complex128"):  # fmt: skip
            dtype = getattr(torch, name)
            for n in (0, 3):
                x = torch.full((n,), rank, dtype=dtype)
                y, z = torch.zeros_like(x), torch.tensor(rank, dtype=dtype)
                plan = commlang.loads(text).plan(world=size, t=dtype, tensors={"x": x})
                with Executor(plan) as ex:
                    ex.run(x=x, y=y, z=z)
                before = torch.tensor((rank - 1) % size, dtype=dtype)
                assert torch.equal(y, before.expand(n)), name
                assert torch.equal(z, torch.tensor(1, dtype=dtype)), name
                found.append((name, n))
    return found


def refusals(rank: int, size: int, path: Path) -> list[str]:
    plan = commlang.loads(RING).plan(world=size)
    found: list[str] = []
    with joined(rank, size, path):
        with Executor(plan) as ex:
            x = torch.zeros(8)
            two = torch.zeros(8, 2)
            cases: list[dict[str, Any]] = [
                {"x": torch.zeros(8, dtype=torch.int32)},
                {"x": torch.zeros(9)},
                {"x": two[:, 0]},
                {"x": torch.zeros(8, device="meta")},
                {"z": x},
                {"x": [1.0] * 8},
                {"x": x, "y": x},
                {"x": torch.zeros(8).to_sparse()},
                {"x": torch._neg_view(x)},  # pyright: ignore
            ]
            found += [said(partial(ex.run, **case)) for case in cases]
            ex.run(x=x)  # none of that did any harm
        found.append(said(lambda: ex.run(x=x)))
        found.append(said(lambda: Executor(commlang.loads(RING).plan(world=size + 1))))
        found.append(said(lambda: Executor(plan, device="meta")))
    found.append(said(lambda: Executor(plan)))
    return found


def opened_again(rank: int, size: int, path: Path) -> tuple[list[float], str]:
    """An Executor may be entered again once it is closed, until its group is destroyed."""
    with joined(rank, size, path):
        ex = Executor(commlang.loads(HALVES).plan(world=size))
        x = torch.ones(4)
        for _ in range(3):
            with ex:
                ex.run(x=x)
                assert "open already" in said(ex.__enter__)
    return x.tolist(), said(ex.__enter__)


# ----------------------------------------------------------------- joining


def ways(rank: int, size: int, path: Path) -> list[Any]:
    """Each way to meet; a group that is there already is used and left."""
    port = int((path / "port").read_text())
    plan = commlang.loads(HALVES).plan(world=size)
    found: list[Any] = []
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank)}
    place = {"rank": rank, "world_size": size}
    for method, options in (
        ("env://", {}),
        (f"tcp://127.0.0.1:{port + 1}", {**place, "backend": "cpu:gloo"}),
        (f"file://{path}/met", {**place, "backend": "gloo"}),
    ):
        x = torch.ones(4)
        with commlang.process_group(method, device="cpu", **options) as world:
            assert (world.rank, world.world_size, world.made_here) == (rank, size, True)
            with commlang.process_group() as again, Executor(plan, device=again.device) as ex:
                assert not again.made_here
                ex.run(x=x)
            dist.all_reduce(x)
        found.append((x.tolist(), dist.is_initialized()))
    return found


def settings(rank: int, size: int, path: Path) -> list[Any]:
    """Subgroups have the group's backend and timeout, and their ranks in the plan's order."""
    text = "pattern f(x: float32[2]):\n    group g = reversed(ranks)\n"
    text += "    broadcast(x, src=0, group=g)\n"
    plan = commlang.loads(text).plan(world=size)
    found: list[Any] = []
    with joined(rank, size, path, timeout=77.0, backend="cpu:gloo"):
        for timeout in (None, timedelta(seconds=55)):
            with Executor(plan, timeout=timeout) as ex:
                x = torch.full((2,), float(rank))
                ex.run(x=x)
                assert ex._communicators is not None  # pyright: ignore
                (made,) = ex._communicators.made  # pyright: ignore
                options: Any = made._get_backend(torch.device("cpu"))  # pyright: ignore
                found.append((
                    x.tolist(),
                    dist.get_process_group_ranks(made),
                    dist.get_backend(made),
                    options.options._timeout.total_seconds(),
                    ex.timeout.total_seconds(),
                ))  # fmt: skip
        dist.barrier()
    return found


# ------------------------------------------------------------------ groups


def apart(rank: int, size: int, path: Path) -> list[list[float]]:
    """Two disjoint groups, in no sorted order, run different plans different numbers of times."""
    found: list[list[float]] = []
    with joined(rank, size, path):
        first = dist.new_group([3, 1, 0], sort_ranks=False)
        second = dist.new_group([4, 2], sort_ranks=False)
        for other in ([1, 2], [4]):  # ranks know different numbers of groups
            dist.new_group(other)
        inside = rank in (3, 1, 0)
        refused = said(lambda: Executor(commlang.loads(RING).plan(world=3), group=first))
        assert ("not a member" in refused) is not inside
        text = "pattern f(x: float32[2]):\n    group g = [2, 0]\n    if rank in g:\n"
        text += "        broadcast(x, src=2, group=g)\n"
        plan = commlang.loads(text if inside else HALVES).plan(world=3 if inside else 2)
        for _ in range(4 if inside else 2):
            with Executor(plan, group=first if inside else second) as ex:
                x = torch.full((2 if inside else 4,), float(rank))
                ex.run(x=x)
            found.append(x.tolist())
        with Executor(commlang.loads(RING).plan(world=size)) as ex:
            x = torch.full((8,), float(rank))
            ex.run(x=x)
            found.append(x.tolist())
        total = torch.ones(1)
        dist.all_reduce(total)
        found.append(total.tolist())
    return found


def tidy(rank: int, size: int, path: Path) -> list[int]:
    """Keys that are left in the store after ever more meetings."""
    plan = commlang.loads(RING).plan(world=size)
    found: list[int] = []
    with joined(rank, size, path):
        world = dist.group.WORLD
        assert world is not None
        for _ in range(3):
            for _ in range(4):
                with Executor(plan) as ex:
                    ex.run()
                agreement = Agreement(world, timedelta(seconds=PATIENT))
                agreement.meet({"pattern": "by hand"})
                agreement.part(wait=True)
            dist.barrier()
            found.append(store_keys())
            dist.barrier()
    return found


# --------------------------------------------------------------- agreement


def missing(rank: int, size: int, path: Path) -> list[str]:
    """Rank 1 comes too late for rank 0, and so for all; afterwards all may try again."""
    plan = commlang.loads(RING).plan(world=size)
    found: list[str] = []
    with joined(rank, size, path):
        ex = Executor(plan, timeout=timedelta(seconds=PATIENT if rank else SHORT))
        tell(path, f"rank {rank} is here")
        wait_for(path, "rank 0 gave up" if rank == 1 else "rank 2 is here")
        found.append(said(ex.__enter__))
        tell(path, f"rank {rank} gave up")
        with Executor(plan) as ex:
            x = torch.full((8,), float(rank))
            ex.run(x=x)
        found.append(str(x.tolist()[0]))
    return found


def store_ends(rank: int, size: int, path: Path) -> str:
    """Rank 0, which serves the store, ends while rank 1 waits for it there."""
    method = f"tcp://127.0.0.1:{(path / 'port').read_text()}"
    dist.init_process_group("gloo", init_method=method, rank=rank, world_size=size)
    if rank == 0:
        wait_for(path, "entering")
        return ""
    tell(path, "entering")
    return said(Executor(commlang.loads(RING).plan(world=size)).__enter__)


def other_plan(rank: int, size: int, path: Path) -> list[str]:
    """Rank 2 has another parameter, another text, another pattern, then another commlang."""
    found: list[str] = []
    ring = commlang.loads(RING)
    odd = [
        ring.plan(world=size, n=9),
        commlang.loads(RING + "# changed\n").plan(world=size),
        commlang.loads(HALVES).plan(world=size),
    ]
    with joined(rank, size, path):
        for plan in odd:
            mine = plan if rank == 2 else ring.plan(world=size)
            found.append(said(Executor(mine).__enter__))
        version = "0.0.9" if rank == 2 else commlang.__version__
        with mock.patch("commlang.execute.executor.__version__", version):
            found.append(said(Executor(ring.plan(world=size)).__enter__))
        with Executor(ring.plan(world=size)) as ex:
            ex.run()
    return found


def without_store(rank: int, size: int, path: Path) -> list[str]:
    """MPI has no store: a collective compares the plans."""
    from commlang.execute import agreement

    agreement._store_of = lambda group: None  # pyright: ignore
    found: list[str] = []
    with joined(rank, size, path):
        for n in (8, 8 + rank // 2):
            plan = commlang.loads(RING).plan(world=size, n=n)
            found.append(said(lambda plan=plan: run_once(plan)))
    return found


def run_once(plan: Plan, **tensors: torch.Tensor) -> None:
    with Executor(plan) as ex:
        ex.run(**tensors)


def by_json(rank: int, size: int, path: Path) -> list[Any]:
    """Rank 0 plans; the others read its plan and expand their own rows alone."""
    with joined(rank, size, path):
        found: list[Any] = []
        for number, text in enumerate((None, HALVES)):
            if rank == 0:
                made = commlang.loads(text) if text else commlang.load(path / "file.cl")
                (path / f"{number}.json").write_text(made.plan(world=size).to_json())
            dist.barrier()
            plan = Plan.from_json((path / f"{number}.json").read_text())
            with Executor(plan) as ex:
                x = torch.full((4,), float(rank))
                ex.run(x=x)
            found.append((x.tolist(), sorted(plan._programs)))  # pyright: ignore
    return found
