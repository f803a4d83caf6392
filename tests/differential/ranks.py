"""Runs a script on a real rank: plain torch.distributed, one call per step, none of the Executor's.

A branch that is a sequence runs in a thread of its own; messages and collectives of one `parallel:`
are all started, in the order of the text, before any is waited for.
"""

from __future__ import annotations

import contextlib
import os
import threading
import traceback
import warnings
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.distributed as distributed

import commlang
from commlang.execute.executor import Executor
from tests.differential.memory import Memory
from tests.differential.script import Branches, Script, Step

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

dist = cast("Any", distributed)
PATIENCE = timedelta(minutes=10)
"""Whoever started the ranks ends those that hang, so no operation has to time out."""


@dataclass(slots=True)
class Finished:
    """A work with something left to do once the communication is over."""

    work: Any
    after: Callable[[], Any]

    def wait(self) -> None:
        self.work.wait()
        self.after()


def serve(rank: int, world: int, path: str, jobs: Connection) -> None:
    """Join a group, then run one script after the other; answers each with ("ended", …) or why not.

    Ends when the connection does.
    """
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)
    dist.init_process_group(
        "gloo", init_method=f"file://{path}", rank=rank, world_size=world, timeout=PATIENCE
    )
    groups: dict[tuple[tuple[int, ...], int], Any] = {}
    jobs.send(("ready", None, None))
    while True:
        try:
            script, seed, text = jobs.recv()
        except EOFError:
            os._exit(0)
        try:
            memory = Memory(script, seed)
            if text:
                execute(text, script, memory)
            else:
                Run(script, memory, groups).units(script.body)
            data = {name: t.clone() for name, t in memory.tensors().items()}
            jobs.send(("ended", {n: _bytes(t) for n, t in data.items()}, memory.seen))
        except BaseException:
            with contextlib.suppress(OSError):
                jobs.send(("error", traceback.format_exc(), None))


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.view(torch.uint8).numpy().tobytes()


def execute(text: str, script: Script, memory: Memory) -> None:
    """Run a pattern as a user does: planned, and by the Executor."""
    plan = commlang.loads(text, "main").plan(world=script.world, schedule="overlap")
    shapes = {name: shape for name, (_, shape) in script.tensors.items()}
    tensors = {name: flat.view(shapes[name]) for name, flat in memory.tensors().items()}
    with Executor(plan, timeout=PATIENCE) as executor:
        executor.run(**tensors)


class Run:
    """One script on one rank; `groups` are those made before, by members and number."""

    def __init__(self, script: Script, memory: Memory, groups: dict[Any, Any]) -> None:
        self.memory = memory
        self.works: dict[int, Any] = {}
        self.groups: dict[int, Any] = {0: dist.group.WORLD}
        self.members: dict[int, tuple[int, ...]] = {0: tuple(range(script.world))}
        counts: dict[tuple[int, ...], int] = {}
        for number, members in script.groups.items():
            counts[members] = counts.get(members, 0) + 1
            key = members, counts[members]
            if key not in groups:
                groups[key] = dist.new_group(list(members), timeout=PATIENCE, sort_ranks=False)
            self.groups[number], self.members[number] = groups[key], members

    # ------------------------------------------------------------------ order

    def units(self, block: Branches) -> None:
        for unit in block.units:
            if isinstance(unit, Branches):
                (self.side_by_side if unit.side_by_side else self.units)(unit)
            elif unit.kind == "WAIT":
                self.join(unit)
            else:
                work = self.start(unit)
                if unit.asynchronous:
                    self.works[unit.row] = work
                elif work is not None:
                    work.wait()

    def side_by_side(self, block: Branches) -> None:
        steps = [unit for unit in block.units if isinstance(unit, Step)]
        works = [self.start(s) for s in steps if s.group >= 0]
        failed: list[BaseException] = []
        threads = [
            threading.Thread(target=self._branch, args=(unit, failed), daemon=True)
            for unit in block.units
            if isinstance(unit, Branches)
        ]
        for thread in threads:
            thread.start()
        for step in steps:
            if step.group < 0 and step.kind != "WAIT":
                self.start(step)
        for work in works:
            if work is not None:
                work.wait()
        for step in steps:
            if step.kind == "WAIT":
                self.join(step)
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]

    def _branch(self, block: Branches, failed: list[BaseException]) -> None:
        try:
            (self.side_by_side if block.side_by_side else self.units)(block)
        except BaseException as error:
            failed.append(error)

    def join(self, step: Step) -> None:
        for row in step.joins:
            work = self.works.pop(row)
            if work is not None:
                work.wait()

    # ------------------------------------------------------------------ calls

    def start(self, step: Step) -> Any:
        """Start a step; returns what to wait for, or None where it is over."""
        if step.group < 0:
            self.memory.work(step)
            return None
        views = self.memory.views(step)
        group = self.groups[step.group]
        if step.kind == "SEND":
            return dist.isend(views[0], dst=step.peer, group=group, tag=step.tag)
        if step.kind == "RECV":
            return dist.irecv(views[0], src=step.peer, group=group, tag=step.tag)
        return self.collective(step, views, {"group": group, "async_op": True})

    def collective(self, step: Step, views: list[torch.Tensor], on: dict[str, Any]) -> Any:
        op = {"op": getattr(dist.ReduceOp, step.op.upper())} if step.op else {}
        me = dist.get_rank()
        match step.kind:
            case "ALL_REDUCE":
                return dist.all_reduce(views[0], **op, **on)
            case "REDUCE":
                return dist.reduce(views[0], dst=step.peer, **op, **on)
            case "BROADCAST":
                return dist.broadcast(views[0], src=step.peer, **on)
            case "SCATTER":
                parts = views[1:] if me == step.peer else None
                return dist.scatter(views[0], parts, src=step.peer, **on)
            case "GATHER":
                parts = views[:-1] if me == step.peer else None
                return dist.gather(views[-1], parts, dst=step.peer, **on)
            case "ALL_GATHER":
                return _all_gather(step.name, views, on)
            case "REDUCE_SCATTER":
                return _reduce_scatter(step.name, views, {**op, **on})
            case "ALL_TO_ALL":
                return _all_to_all(step.name, views, on)
            case _:
                return dist.barrier(**on)


def _all_gather(name: str, views: list[torch.Tensor], on: dict[str, Any]) -> Any:
    *outputs, tensor = views
    if name != "all_gather":
        return dist.all_gather_single(outputs[0], tensor, **on)
    longest = max(output.numel() for output in outputs)
    if all(output.numel() == longest for output in outputs):
        return dist.all_gather(outputs, tensor, **on)
    padded = tensor.new_zeros(longest)  # gloo refuses lists whose entries differ in length
    padded[: tensor.numel()] = tensor.reshape(-1)
    rows = [torch.empty_like(padded) for _ in outputs]

    def unpack() -> None:
        for output, row in zip(outputs, rows, strict=True):
            output.copy_(row[: output.numel()].view(output.shape))

    return Finished(dist.all_gather(rows, padded, **on), unpack)


def _reduce_scatter(name: str, views: list[torch.Tensor], on: dict[str, Any]) -> Any:
    output, *inputs = views
    if name != "reduce_scatter":
        return dist.reduce_scatter_single(output, inputs[0], **on)
    if len({entry.numel() for entry in inputs}) == 1:
        return dist.reduce_scatter(output, inputs, **on)
    whole = torch.cat([entry.reshape(-1) for entry in inputs])
    place = dist.get_rank(on["group"])
    start = sum(entry.numel() for entry in inputs[:place])
    work = dist.all_reduce(whole, **on)
    part = whole[start : start + output.numel()]
    return Finished(work, lambda: output.copy_(part.view(output.shape)))


def _all_to_all(name: str, views: list[torch.Tensor], on: dict[str, Any]) -> Any:
    half = len(views) // 2
    outputs, inputs = views[:half], views[half:]
    if name == "all_to_all_single" and half == 1:
        return dist.all_to_all_single(outputs[0], inputs[0], **on)
    come, go = ([v.numel() for v in part] for part in (outputs, inputs))
    received = outputs[0].new_empty(sum(come))
    given = torch.cat([v.reshape(-1) for v in inputs])
    work = dist.all_to_all_single(received, given, come, go, **on)

    def unpack() -> None:
        for output, part in zip(outputs, received.split(come), strict=True):
            output.copy_(part.view(output.shape))

    return Finished(work, unpack)
