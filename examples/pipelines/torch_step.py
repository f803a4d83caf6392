"""One training step of torch's own pipeline runtime on gloo ranks, against the same step in one go.

    python examples/pipelines/torch_step.py SCHEDULE:{early|deferred}...

SCHEDULE is ZBVZeroBubble, InterleavedZeroBubble, Interleaved1F1B or LoopedBFS, on two ranks with
two stages each and 4 micro-batches; `deferred` sets `defer_pp_recv=True`. Prints how far the
gradients are from the right ones, relative to the largest of them.
"""

from __future__ import annotations

import copy
import multiprocessing
import sys
import tempfile
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import get_schedule_class

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

WORLD, STAGES, BATCHES, WIDTH = 2, 4, 4, 8
TIMEOUT_S = 60
EXACT = 1e-4
"""Above what float32 could lose by another order of its sums."""


def work(rank: int, name: str, deferred: bool, store: str, said: Queue[Any]) -> None:
    dist.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=WORLD,
        timeout=timedelta(seconds=TIMEOUT_S),
    )
    torch.manual_seed(0)
    layers = [
        torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh()) for _ in range(STAGES)
    ]
    whole = copy.deepcopy(torch.nn.Sequential(*layers))
    batch, target = torch.randn(2, 2 * BATCHES, WIDTH)
    loss = torch.nn.functional.mse_loss

    mine = [rank, STAGES - 1 - rank] if name == "ZBVZeroBubble" else [rank, rank + WORLD]
    stages = [PipelineStage(layers[s], s, STAGES, torch.device("cpu")) for s in mine]
    schedule = get_schedule_class(name)(stages, BATCHES, loss_fn=loss, defer_pp_recv=deferred)  # pyright: ignore
    schedule.step(
        *([batch] if 0 in mine else []), target=target if STAGES - 1 in mine else None, losses=[]
    )

    for part, wanted in zip(batch.chunk(BATCHES), target.chunk(BATCHES), strict=True):
        (loss(whole(part), wanted) / BATCHES).backward()
    pairs = [pair for s in mine for pair in zip(layers[s].parameters(), whole[s].parameters())]  # noqa: B905
    error = max((found.grad - right.grad).abs().max().item() for found, right in pairs)  # pyright: ignore
    largest = max(right.grad.abs().max().item() for _, right in pairs)  # pyright: ignore
    said.put((rank, error / largest))
    said.close()
    said.join_thread()


def step(name: str, when: str) -> list[float]:
    """The largest relative error on each rank."""
    context = multiprocessing.get_context("fork")
    said = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        given = (name, when == "deferred", f"{folder}/store", said)
        ranks = [context.Process(target=work, args=(rank, *given)) for rank in range(WORLD)]
        for process in ranks:
            process.start()
        try:
            found = dict(said.get(timeout=2 * TIMEOUT_S) for _ in ranks)
        finally:
            for process in ranks:
                process.join(10)
                process.kill()
    return [found[rank] for rank in range(WORLD)]


def main(cases: list[str]) -> None:
    for case in cases:
        worst = max(step(*case.split(":")))
        print(f"{case}: " + (f"gradients wrong by {worst:.0%}" if worst > EXACT else "right"))


if __name__ == "__main__":
    main(sys.argv[1:])
