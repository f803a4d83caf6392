"""Run schedules on real gloo ranks, action by action, and say what came of it.

    python examples/pipelines/replay.py {torch|blocking} TIMEOUT_S FILE.csv...

`torch` does what torch's runtime does: each send and receive is an isend or irecv without a tag, a
computation waits for what it needs, the sends are waited for at the end. `blocking` ends each
message before the next action. A message carries the number of what it is, so that a receive
which gets another's is told. A rank that does not get to the end in time hangs.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from commlang.convert import read_schedule
from commlang.convert.actions import COMPUTE, RECVS, SENDS, Act, Action
from commlang.convert.meetings import sender
from commlang.convert.order import peer_stage
from commlang.convert.placement import place_stages

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

    from commlang.convert.schedule import Schedule

NEEDED = {Act.FORWARD: Act.RECV_F, Act.BACKWARD: Act.RECV_B, Act.BACKWARD_INPUT: Act.RECV_B}


def number(send: Action, batches: int) -> int:
    return 2 * (send.stage * batches + send.batch) + (send.act is Act.SEND_B)


def name(value: int, batches: int) -> str:
    place, backward = divmod(value, 2)
    stage, batch = divmod(place, batches)
    return str(Action(Act.SEND_B if backward else Act.SEND_F, stage, batch))


class Rank:
    """One rank's messages, under way and received."""

    def __init__(self, schedule: Schedule, group: Any, *, blocking: bool) -> None:
        self.group = group
        self.batches = schedule.batches
        self.at = place_stages(schedule)
        self.blocking = blocking
        self.sends: list[Any] = []
        self.receives: dict[Action, Any] = {}
        self.boxes: dict[Action, torch.Tensor] = {}

    def perform(self, action: Action) -> None:
        if action.act in SENDS:
            message = torch.tensor([number(action, self.batches)])
            self._start(dist.send, dist.isend, message, action)
        elif action.act in RECVS:
            self.boxes[action] = torch.tensor([-1])
            self._start(dist.recv, dist.irecv, self.boxes[action], action)
        elif action.act in COMPUTE and action.act in NEEDED:
            needed = Action(NEEDED[action.act], action.stage, action.batch)
            if needed in self.receives:
                self.receives.pop(needed).wait()

    def _start(self, now: Any, later: Any, tensor: torch.Tensor, action: Action) -> None:
        peer = self.at[peer_stage(action)]
        if self.blocking:
            now(tensor, peer, self.group)
        elif action.act in SENDS:
            self.sends.append((later(tensor, peer, self.group), tensor))
        else:
            self.receives[action] = later(tensor, peer, self.group)

    def finish(self) -> list[str]:
        for work, _ in self.sends:
            work.wait()
        told: list[str] = []
        for action, box in self.boxes.items():
            if int(box) != number(sender(action), self.batches):
                told.append(f"{action} got {name(int(box), self.batches)}")
        return told


def work(rank: int, path: str, mode: str, timeout_s: float, store: str, said: Queue[Any]) -> None:
    schedule = read_schedule(path)
    world = len(schedule.rows)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    group = dist.new_group(timeout=timedelta(seconds=timeout_s))
    dist.barrier()  # whoever was slow to start is here
    mine = Rank(schedule, group, blocking=mode == "blocking")
    try:
        for action in schedule.rows[rank].actions:
            for atom in action.atoms():
                mine.perform(atom)
        said.put((rank, mine.finish()))
    except RuntimeError:  # timed out, or a peer that did is gone
        said.put((rank, None))
    said.close()
    said.join_thread()


def replay(path: str, mode: str, timeout_s: float) -> str:
    """`ends`, `hangs`, or which receives got what."""
    context = multiprocessing.get_context("fork")
    said = context.Queue()
    world = len(read_schedule(path).rows)
    with tempfile.TemporaryDirectory() as folder:
        given = (path, mode, timeout_s, f"{folder}/store", said)
        ranks = [context.Process(target=work, args=(rank, *given)) for rank in range(world)]
        for process in ranks:
            process.start()
        try:
            found = dict(said.get(timeout=timeout_s + 60) for _ in ranks)
        finally:
            for process in ranks:
                process.join(10)
                process.kill()
    if None in found.values():
        return "hangs"
    mixed = [word for rank in range(world) for word in found[rank]]
    return f"ends, but {', '.join(mixed)}" if mixed else "ends"


def main(mode: str, timeout_s: float, paths: list[str]) -> None:
    for path in paths:
        print(f"{Path(path).stem}: {replay(path, mode, timeout_s)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), sys.argv[3:])
