"""What an operation costs the host: a plan against the calls that a person writes.

    python benchmarks/host.py > benchmarks/host.txt

torch's `fake` backend moves nothing, so what is left is the host's own work: Python, checks,
options, the dispatcher. A case is one statement, run many times by an Executor that is bound once
(`_run`, as `Executor.run` does it after its check of the tensors) and by the functions of
torch.distributed in a loop. Both take turns in random order, an A/A series of the hand-written
form beside them; a figure is the median of the rounds, a ratio the median of the rounds' ratios.
Then each pattern of the library, by `Executor.run` with all its checks (`host_library.py`).
"""

from __future__ import annotations

import gc
import os
import platform
import random
import statistics
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import host_library
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

import commlang
from commlang.execute.surroundings import below_autograd

if TYPE_CHECKING:
    from collections.abc import Callable

WORLD = 4
REPEATS = 200
"""Operations in one round."""
ROUNDS = 200
_dist: Any = dist
_c10d: Any = torch._C._distributed_c10d  # pyright: ignore


@dataclass(frozen=True)
class Case:
    """A statement, the same by hand, and how many operations one of them is."""

    name: str
    body: str
    hand: Callable[[dict[str, torch.Tensor]], None]
    limit: float
    own: Callable[[Any, dict[str, torch.Tensor]], Any] | None = None
    """The same by the backend itself, if that copies data even on `fake`."""


def _batch(t: dict[str, torch.Tensor]) -> None:
    messages = [dist.P2POp(dist.isend, t["x"], 1), dist.P2POp(dist.irecv, t["y"], 3)]
    for work in dist.batch_isend_irecv(messages):
        work.wait()


def _isend(t: dict[str, torch.Tensor]) -> None:
    work = dist.isend(t["x"], 1)
    assert work is not None
    work.wait()


def _async(t: dict[str, torch.Tensor]) -> None:
    _dist.all_reduce(t["x"], async_op=True).wait()


CASES = [
    Case("all_reduce", "all_reduce(x)", lambda t: _dist.all_reduce(t["x"]), 0.5),
    Case("all_reduce, async", "h = async all_reduce(x)\nwait(h)", _async, 0.5),
    Case("broadcast", "broadcast(x, src=0)", lambda t: _dist.broadcast(t["x"], 0), 0.5),
    Case(
        "reduce",  # leaves what is undefined on the others, who fill it anew
        "reduce(x, dst=0)\nif rank > 0:\n    fill(x, 0)",
        lambda t: _dist.reduce(t["x"], 0),
        0.5,
    ),
    Case(
        "all_gather_into_tensor",
        "all_gather_into_tensor(z, x)",
        lambda t: _dist.all_gather_single(t["z"], t["x"]),
        0.5,
        lambda backend, t: backend._allgather_base(t["z"], t["x"], _c10d.AllgatherOptions()),
    ),
    Case(
        "reduce_scatter_tensor",
        "reduce_scatter_tensor(x, z)",
        lambda t: _dist.reduce_scatter_single(t["x"], t["z"]),
        0.5,
        lambda backend, t: backend._reduce_scatter_base(
            t["x"], t["z"], _c10d.ReduceScatterOptions()
        ),
    ),
    Case(
        "all_to_all_single",
        "all_to_all_single(z, v)",
        lambda t: _dist.all_to_all_single(t["z"], t["v"]),
        0.5,
    ),
    Case(
        "all_gather (list)",
        "all_gather(z.chunks(world), x)",
        lambda t: _dist.all_gather(list(t["z"].chunk(WORLD)), t["x"]),
        0.5,
    ),
    Case("isend, wait", "h = async send(x, dst=1)\nwait(h)", _isend, 0.6),
    Case("batch of isend, irecv", "parallel:\n    send(x, dst=1)\n    recv(y, src=3)", _batch, 0.6),
    Case("copy", "x -> y", lambda t: cast("None", t["y"].copy_(t["x"])), 1.0),
]


def plan_of(case: Case, repeats: int) -> commlang.Plan:
    """The statement, `repeats` times, on rank 0 of 4. Others do what rank 0 needs to be sound."""
    lines = "\n".join(f"        {line}" for line in case.body.split("\n"))
    lines = lines.replace("dst=1", "dst=ranks.next").replace("src=3", "src=ranks.prev")
    text = (
        "pattern main(x: float32[n], y: float32[n], z: float32[4 * n], v: float32[4 * n], n = 8):\n"
        f"    for i in range({repeats}):\n{lines}\n"
    )
    if "async send" in case.body:
        text += f"    for i in range({repeats}):\n        recv(y, src=ranks.prev)\n"
        text = text.replace("wait(h)", "").replace("h = async", "h[i] = async") + "    wait(h)\n"
    return commlang.loads(text).plan(world=WORLD)


@dataclass(frozen=True)
class Cost:
    """Microseconds per operation: by hand, planned, and what the backend itself copies in each.

    `ratio` is that of planned to by hand, without the backend's own part, `alike` that of A/A.
    """

    hand: float
    plan: float
    own: float
    ratio: float
    alike: float


def measure(case: Case) -> Cost:
    """Both ways in turn, on the same tensors."""
    tensors = {"x": torch.ones(8), "y": torch.ones(8)}
    tensors |= {"z": torch.ones(8 * WORLD), "v": torch.ones(8 * WORLD)}
    executor = commlang.Executor(plan_of(case, REPEATS))
    hand = case.hand

    def by_hand() -> float:
        start = time.process_time()
        for _ in range(REPEATS):
            hand(tensors)
        return (time.process_time() - start) / REPEATS

    with executor:
        executor.run(**tensors)
        sends = "async send" in case.body

        def planned() -> float:
            start = time.process_time()
            executor._run()  # pyright: ignore[reportPrivateUsage]
            taken = (time.process_time() - start) / REPEATS
            return taken / 2 if sends else taken  # its receives are the same kind of work

        series = {"hand": list[float](), "again": list[float](), "plan": list[float]()}
        ways = {"hand": by_hand, "again": by_hand, "plan": planned}
        gc.disable()
        for _ in range(ROUNDS):
            for way in random.sample(list(ways), len(ways)):
                series[way].append(ways[way]())
        gc.enable()
        own = copying(case, tensors)
    ratios = [
        statistics.median(
            (a - own) / (h - own) for a, h in zip(series[w], series["hand"], strict=True)
        )
        for w in ("plan", "again")
    ]
    middle = {way: statistics.median(values) * 1e6 for way, values in series.items()}
    return Cost(middle["hand"], middle["plan"], own * 1e6, *ratios)


def copying(case: Case, tensors: dict[str, torch.Tensor]) -> float:
    """The time that the backend itself copies: its call less one that moves nothing.

    Both beneath autograd, where copies cost least.
    """
    own = case.own
    if own is None:
        return 0.0
    world: Any = dist.group.WORLD
    backend = world._get_backend(torch.device("cpu"))

    def seconds(call: Callable[[], Any]) -> float:
        start = time.process_time()
        for _ in range(REPEATS):
            call().wait()
        return (time.process_time() - start) / REPEATS

    found: list[float] = []
    for _ in range(ROUNDS):
        with below_autograd():
            less = seconds(lambda: backend.allreduce([tensors["x"]], _c10d.AllreduceOptions()))
            found.append(seconds(lambda: own(backend, tensors)) - less)
    return statistics.median(found)


def main() -> None:
    random.seed(0)
    print(f"# torch {torch.__version__}, Python {platform.python_version()}, {os.cpu_count()} CPUs")
    late = operations()
    worst = host_library.report()
    if worst.ratio > 1.0:
        late.append(f"{worst.name} (library)")
    print(f"# above the limit: {', '.join(late) or 'none'}")
    sys.exit(bool(late))


def operations() -> list[str]:
    """Print the table of single operations; the names of those above their limits."""
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=WORLD)
    print(f"# microseconds of CPU per operation, medians of {ROUNDS} rounds of {REPEATS};")
    print("# `own` is what the backend itself copies, which is left out of the ratios")
    print(f"{'operation':<24} {'by hand':>8} {'planned':>8} {'own':>6} {'ratio':>6} {'A/A':>6} "
          f"{'limit':>6}")  # fmt: skip
    late: list[str] = []
    for case in CASES:
        cost = measure(case)
        own = f"{cost.own:6.2f}" if case.own else "     -"
        print(
            f"{case.name:<24} {cost.hand:8.2f} {cost.plan:8.2f} {own} {cost.ratio:6.2f} "
            f"{cost.alike:6.2f} {case.limit:6.2f}"
        )
        if cost.ratio > case.limit:
            late.append(case.name)
    dist.destroy_process_group()
    return late


if __name__ == "__main__":
    main()
