"""What the backend over mpi4py can do, cell by cell, against `commlang/transports/support.toml`.

    python benchmarks/mpi_support.py > benchmarks/mpi_support.txt
    python benchmarks/mpi_support.py --world 3 --json all_reduce/int32/sum send/float32

Cells are those of gloo_support.py. They run in one job of MPI: what the backend refuses it refuses
on every rank, before anything is sent.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from benchmarks.gloo_support import LOCAL, WORLD, cells, outcome, report
from commlang.execute.mpi.launch import launch_mpi
from commlang.execute.options import LaunchOptions

if TYPE_CHECKING:
    from commlang.execute.rank import RankContext

DEADLINE_S = 120.0


def work(context: RankContext, chosen: list[str]) -> list[str]:
    """What became of each cell on this rank."""
    torch.set_num_threads(1)
    told: list[str] = []
    with context.join(backend="mpi") as world:
        for number, cell in enumerate(chosen):
            context.position[0] = number
            told.append(outcome(cell, world.rank, world.world_size))
            dist.barrier()
    return told


def measure(chosen: list[str], world: int = WORLD) -> dict[str, str]:
    """What became of each cell: as one rank says it, or "astray" if ranks differ."""
    options = LaunchOptions(nproc_per_node=world)
    ranks = launch_mpi(work, (chosen,), options, timeout=DEADLINE_S)
    told: dict[str, str] = {}
    for cell, *said in zip(chosen, *ranks, strict=True):
        alike = len({text.split(":")[0] for text in said}) == 1
        told[cell] = said[0] if alike else f"astray: {', '.join(said)}"
    return told


def main(arguments: list[str]) -> None:
    """The whole measurement, or some cells."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", type=int, default=WORLD)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("cells", nargs="*")
    given: Any = parser.parse_args(arguments)
    chosen = given.cells or [cell for cell in cells() if cell.split("/")[0] not in LOCAL]
    told = measure(chosen, given.world)
    print(json.dumps(told) if given.json else report(told, given.world, "mpi"))


if __name__ == "__main__":
    # Ranks find these functions by the module's name, which a script has not.
    from benchmarks import mpi_support

    mpi_support.main(sys.argv[1:])
