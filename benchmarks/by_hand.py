"""A plan's operations as a person writes them: calls of torch.distributed, one after the other.

The tensors' views are cut beforehand, which favours this form; everything else is decided where a
program decides it, in the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from commlang.execute.collectives import reduce_op
from commlang.execute.local_work import bind_local
from commlang.operations import Kind, ReduceOp
from commlang.schedule import Act

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang import Executor
    from commlang.schedule import Action

Step = "Callable[[], Any]"
_dist: Any = dist


class ByHand:
    """The same run as an open Executor's, on its tensors and groups: `run` it at will."""

    def __init__(self, executor: Executor) -> None:
        self._executor: Any = executor
        self._program = executor.program
        self._works: dict[int, Any] = {}
        self._steps = [self._step(action) for action in executor.actions]

    def run(self) -> None:
        for step in self._steps:
            step()

    def _step(self, action: Action) -> Callable[[], Any]:
        works = self._works
        if action.act is Act.BATCH:
            return self._batch(action.rows)
        if action.act is Act.JOIN:
            rows = action.rows
            return lambda: [works.pop(row).wait() for row in rows]
        row = action.row
        if self._program.site_of(row).kind.is_local:
            return self._local(row)
        if action.act is Act.RUN:
            return self._call(row, wait=True)
        start = self._call(row, wait=False)

        def issue() -> None:
            works[row] = start()

        return issue

    def _batch(self, rows: tuple[int, ...]) -> Callable[[], Any]:
        kinds = {row: self._program.site_of(row).kind for row in rows}
        messages = [self._message(row) for row in rows if kinds[row].is_message]
        others = [self._call(row, wait=False) for row in rows if kinds[row].is_collective]
        local = [self._local(row) for row in rows if kinds[row].is_local]

        def run() -> None:
            asked = [dist.P2POp(*arguments) for arguments in messages]
            works: list[Any] = dist.batch_isend_irecv(asked) if asked else []
            works += [start() for start in others]
            for step in local:
                step()
            for work in works:
                work.wait()

        return run

    def _views(self, row: int) -> list[torch.Tensor]:
        return self._executor._memory.views(row)

    def _group(self, row: int) -> Any:
        number = int(self._program.group[row])
        return self._executor._communicators[number] if number else None

    def _message(self, row: int) -> tuple[Any, ...]:
        """What P2POp takes."""
        program = self._program
        function = dist.isend if program.site_of(row).kind is Kind.SEND else dist.irecv
        peer, tag = int(program.peer[row]), int(program.tag[row])
        return function, self._views(row)[0], peer, self._group(row), tag

    def _call(self, row: int, *, wait: bool) -> Callable[[], Any]:
        site = self._program.site_of(row)
        if site.kind.is_message:
            function, tensor, peer, group, tag = self._message(row)
            if wait:
                blocking: Any = dist.send if function is dist.isend else dist.recv
                return lambda: blocking(tensor, peer, group=group, tag=tag)
            return lambda: function(tensor, peer, group=group, tag=tag)
        later, group, op = not wait, self._group(row), reduce_op(site.op)
        peer, views = int(self._program.peer[row]), self._views(row)
        first, last = (views[0], views[-1]) if views else (None, None)
        function = getattr(_dist, _NEWER.get(site.name, site.name))
        half = len(views) // 2
        match site.kind:
            case Kind.ALL_REDUCE:
                return lambda: function(first, op=op, group=group, async_op=later)
            case Kind.REDUCE:
                return lambda: function(first, dst=peer, op=op, group=group, async_op=later)
            case Kind.BROADCAST:
                return lambda: function(first, src=peer, group=group, async_op=later)
            case Kind.SCATTER:
                parts = views[1:]
                return lambda: function(first, parts or None, src=peer, group=group, async_op=later)
            case Kind.GATHER:
                parts = views[:-1]
                return lambda: function(last, parts or None, dst=peer, group=group, async_op=later)
            case Kind.ALL_GATHER:
                out = views[:-1] if site.name == "all_gather" else first
                return lambda: function(out, last, group=group, async_op=later)
            case Kind.REDUCE_SCATTER:
                source = views[1:] if site.name == "reduce_scatter" else last
                return lambda: function(first, source, op=op, group=group, async_op=later)
            case Kind.ALL_TO_ALL if site.name == "all_to_all":
                outputs, inputs = views[:half], views[half:]
                return lambda: function(outputs, inputs, group=group, async_op=later)
            case Kind.ALL_TO_ALL if len(views) == 2:
                return lambda: function(first, last, group=group, async_op=later)
            case Kind.ALL_TO_ALL:
                return _uneven(views[:half], views[half:], group, later)
            case _:
                return lambda: function(group=group, async_op=later)

    def _local(self, row: int) -> Callable[[], Any]:
        site, views = self._program.site_of(row), self._views(row)
        if site.kind is Kind.COPY:
            source, target = views
            return lambda: target.copy_(source)
        if site.kind is Kind.ACCUMULATE and site.op is not None and site.op.op is ReduceOp.SUM:
            source, target = views
            return lambda: target.add_(source)
        executor = self._executor
        return bind_local(self._program, row, executor._memory, executor.externs)


_NEWER = {
    "all_gather_into_tensor": "all_gather_single",
    "reduce_scatter_tensor": "reduce_scatter_single",
}


def _uneven(
    outputs: list[torch.Tensor], inputs: list[torch.Tensor], group: Any, later: bool
) -> Callable[[], Any]:
    """One tensor each, of which the lists are consecutive parts, and the parts' lengths."""
    received, sent = (_whole(parts) for parts in (outputs, inputs))
    lengths = [[part.numel() for part in parts] for parts in (outputs, inputs)]
    return lambda: _dist.all_to_all_single(received, sent, *lengths, group=group, async_op=later)


def _whole(parts: list[torch.Tensor]) -> torch.Tensor:
    size = sum(part.numel() for part in parts)
    return parts[0].as_strided((size,), (1,))
