"""Write torch's pipeline schedules as CSV files, for `commlang import`.

    python examples/pipelines/make.py FOLDER

For each schedule and 2 and 4 ranks it writes NAME_RANKS.csv, what torch lowers the schedule to;
NAME_RANKS_deferred.csv, the same with `defer_pp_recv=True`, if the schedule has that option; and
orders/NAME_RANKS.csv, the order of computations before lowering. What a schedule's `_dump_csv`
writes is the same text; here no processes have to be started for it.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

from torch.distributed.pipelining import schedules
from torch.distributed.pipelining._schedule_visualizer import get_schedule_ops
from torch.distributed.pipelining._utils import generate_stage_to_rank_mapping

SCHEDULES = {
    "gpipe": ("GPipe", 1),
    "one_f_one_b": ("1F1B", 1),
    "looped_bfs": ("LoopedBFS", 2),
    "interleaved_1f1b": ("Interleaved1F1B", 2),
    "interleaved_zero_bubble": ("InterleavedZeroBubble", 2),
    "zbv_zero_bubble": ("ZBVZeroBubble", 2),
    "dual_pipe_v": ("DualPipeV", 2),
}
"""Torch's name of each schedule, and how many stages a rank has at least."""
V_SHAPED = ("zbv_zero_bubble", "dual_pipe_v")
RANKS = (2, 4)

Rows = list[list[Any]]


def order(name: str, ranks: int, batches: int, stages_per_rank: int | None = None) -> Rows:
    """The computations of each rank, without pauses; raises ValueError for a size torch refuses."""
    torch_name, stages = SCHEDULES[name]
    rows = get_schedule_ops(torch_name, ranks, batches, stages_per_rank or stages)
    order = [[action for action in row if action and action.is_compute_op] for row in rows]
    if name == "one_f_one_b":
        # Torch 2.13 starts the last stage at micro-batch 1 here. Its step starts at 0.
        order[-1] = [
            schedules._Action(
                action.stage_index, schedules.FORWARD, (action.microbatch_index or 0) - 1
            )
            if action.computation_type == schedules.FORWARD
            else action
            for action in order[-1]
        ]
    return order


def stage_to_rank(name: str, ranks: int, stages: int) -> dict[int, int]:
    """The rank of each stage."""
    style = "v" if name in V_SHAPED else "loop"
    return generate_stage_to_rank_mapping(ranks, stages, style=style)


def lower(rows: Rows, at: dict[int, int], batches: int, *, defer: bool = False) -> Rows:
    """What `_PipelineScheduleRuntime` makes of an order: all that it will do, in order."""
    actions: Any = {}
    for rank, row in enumerate(rows):
        with_weights = schedules._add_unshard_reshard(list(row))
        actions[rank] = schedules._add_reduce_grad(with_weights, batches)  # pyright: ignore
    actions = schedules._add_send_recv(actions, at.__getitem__, len(at))
    if defer:
        actions = schedules._defer_recv_ops(actions, at.__getitem__)
    return [actions[rank] for rank in range(len(rows))]


def write(path: Path, rows: Rows) -> None:
    """As `_dump_csv` writes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)


def main(folder: Path) -> None:
    for name, (_, stages_per_rank) in SCHEDULES.items():
        for ranks in RANKS:
            batches = 2 * ranks
            rows = order(name, ranks, batches)
            at = stage_to_rank(name, ranks, stages_per_rank * ranks)
            write(folder / "orders" / f"{name}_{ranks}.csv", rows)
            write(folder / f"{name}_{ranks}.csv", lower(rows, at, batches))
            if stages_per_rank > 1:  # an option of the schedules with several stages per rank
                deferred = lower(rows, at, batches, defer=True)
                write(folder / f"{name}_{ranks}_deferred.csv", deferred)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
