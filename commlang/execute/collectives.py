"""Communication on torch.distributed: each row as a call with everything but its start decided."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from commlang.execute.calls import Call, calls_on, waited
from commlang.operations import Kind, ReduceOp
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commlang.execute.calls import PublicCalls
    from commlang.execute.memory import Memory
    from commlang.expand.values import Op
    from commlang.program import Program


@record
class Finished:
    """A work with something left to do once the communication is over."""

    work: Any
    after: Callable[[], Any]

    def wait(self) -> None:
        """Wait for the communication, then do the rest."""
        self.work.wait()
        self.after()


def reduce_op(op: Op | None) -> Any:
    """torch's object for a reduce op."""
    if op is None or op.op is ReduceOp.SUM:
        return dist.ReduceOp.SUM
    if op.op is ReduceOp.PREMUL_SUM:
        assert op.factor is not None
        return dist._make_nccl_premul_sum(float(op.factor))  # pyright: ignore
    return getattr(dist.ReduceOp, op.op.name)


def bind_communication(
    program: Program,
    row: int,
    memory: Memory,
    group: dist.ProcessGroup,
    backend: str,
    *,
    all_wait: bool = False,
) -> Call:
    """The call of a send, a recv or a collective; for `all_wait` see `calls_on`."""
    return _bind(program, row, memory.views(row), group, backend, all_wait=all_wait)


def bind_tensor(
    program: Program, row: int, tensor: torch.Tensor, group: dist.ProcessGroup, backend: str
) -> Call:
    """The call of an operation on one tensor, with another in its place."""
    return _bind(program, row, [tensor], group, backend)


def _bind(
    program: Program,
    row: int,
    views: list[torch.Tensor],
    group: dist.ProcessGroup,
    backend: str,
    *,
    all_wait: bool = False,
) -> Call:
    site = program.site_of(row)
    gid, peer, tag = (int(c[row]) for c in (program.group, program.peer, program.tag))
    place = int(program.groups.position(gid, peer)) if peer >= 0 else -1
    calls = calls_on(group, all_wait=all_wait)
    if site.kind.is_message:
        send = site.kind is Kind.SEND
        return (calls.send if send else calls.recv)(views[0], place, tag)
    setting = _Setting(calls, site.op, group, backend, site.name)
    return _collective(site.kind, views, place, setting)


@record
class _Setting:
    calls: PublicCalls
    op: Op | None
    group: dist.ProcessGroup
    backend: str
    name: str

    def call(self, *tensors: Any, name: str | None = None, **arguments: Any) -> Call:
        return self.calls.collective(name or self.name, *tensors, **arguments)

    def reduce(self, *tensors: Any, name: str | None = None, **arguments: Any) -> Call:
        return self.call(*tensors, name=name, op=reduce_op(self.op), **arguments)


def _collective(kind: Kind, views: list[torch.Tensor], place: int, setting: _Setting) -> Call:
    match kind:
        case Kind.ALL_REDUCE:
            return setting.reduce(views[0])
        case Kind.REDUCE:
            return setting.reduce(views[0], group_dst=place)
        case Kind.BROADCAST:
            return setting.call(views[0], group_src=place)
        case Kind.SCATTER:
            return setting.call(views[0], views[1:], group_src=place)
        case Kind.GATHER:
            return setting.call(views[-1], views[:-1], group_dst=place)
        case Kind.ALL_GATHER:
            return _all_gather(views[:-1], views[-1], setting)
        case Kind.REDUCE_SCATTER:
            return _reduce_scatter(views[0], views[1:], setting)
        case Kind.ALL_TO_ALL:
            return _all_to_all(views, setting)
        case _:
            return setting.call()


def _even(views: Sequence[torch.Tensor]) -> bool:
    return len({view.numel() for view in views}) <= 1


def _started(function: Callable[..., Any], *arguments: Any) -> Call:
    start = partial(function, *arguments)
    return Call(start, waited(start))


def _all_gather(outputs: list[torch.Tensor], tensor: torch.Tensor, setting: _Setting) -> Call:
    if setting.name != "all_gather":
        return setting.call(outputs[0], tensor)
    if _even(outputs) or "nccl" in setting.backend:
        return setting.call(outputs, tensor)
    return _started(_padded_all_gather, outputs, tensor, setting)


def _padded_all_gather(
    outputs: list[torch.Tensor], tensor: torch.Tensor, setting: _Setting
) -> Finished:
    """gloo refuses uneven lists: gather entries of the longest length and drop the padding."""
    longest = max(output.numel() for output in outputs)
    padded = tensor.new_zeros(longest)
    padded[: tensor.numel()] = tensor
    rows = tensor.new_empty((len(outputs), longest))
    work = setting.call(rows.view(-1), padded, name="all_gather_single").start()

    def unpack() -> None:
        for output, row in zip(outputs, rows, strict=True):
            output.copy_(row[: output.numel()])

    return Finished(work, unpack)


def _reduce_scatter(output: torch.Tensor, inputs: list[torch.Tensor], setting: _Setting) -> Call:
    if setting.name != "reduce_scatter":
        return setting.reduce(output, inputs[0])
    if _even(inputs) or "nccl" in setting.backend:
        return setting.reduce(output, inputs)
    return _started(_summed_reduce_scatter, output, inputs, setting)


def _summed_reduce_scatter(
    output: torch.Tensor, inputs: list[torch.Tensor], setting: _Setting
) -> Finished:
    """gloo refuses uneven lists: reduce all of it, as gloo does for even ones, and keep a part."""
    flat = torch.cat(inputs)
    start = sum(t.numel() for t in inputs[: dist.get_rank(setting.group)])
    work = setting.reduce(flat, name="all_reduce").start()
    return Finished(work, lambda: output.copy_(flat[start : start + output.numel()]))


def _all_to_all(views: list[torch.Tensor], setting: _Setting) -> Call:
    """Lists, splits or two flat tensors; gloo does lists that are uneven only with splits."""
    if len(views) == 2 and setting.name == "all_to_all_single":
        return setting.call(views[0], views[1])
    half = len(views) // 2
    outputs, inputs = views[:half], views[half:]
    if setting.name == "all_to_all" and (_even(views) or "nccl" in setting.backend):
        return setting.call(outputs, inputs)
    received, sent = _joined(outputs), _joined(inputs)
    if received is not None and sent is not None and not _meet(received, sent):
        return setting.call(received, sent, name="all_to_all_single", **_splits(outputs, inputs))
    return _started(_split_all_to_all, outputs, inputs, setting)


def _joined(parts: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """The flat tensor that the parts are, if they lie behind one another in memory."""
    start = end = parts[0].storage_offset()
    storage = parts[0].untyped_storage().data_ptr()
    for part in parts:
        behind = part.untyped_storage().data_ptr() == storage and part.storage_offset() == end
        if not behind or not part.is_contiguous():
            return None
        end += part.numel()
    return parts[0].as_strided((end - start,), (1,))


def _meet(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two flat tensors share elements: an exchange between those sends what it received."""
    start = max(one.data_ptr(), other.data_ptr())
    return start < min(one.data_ptr() + one.nbytes, other.data_ptr() + other.nbytes)


def _splits(outputs: list[torch.Tensor], inputs: list[torch.Tensor]) -> dict[str, list[int]]:
    return {
        "output_split_sizes": [part.numel() for part in outputs],
        "input_split_sizes": [part.numel() for part in inputs],
    }


def _split_all_to_all(
    outputs: list[torch.Tensor], inputs: list[torch.Tensor], setting: _Setting
) -> Finished:
    received = outputs[0].new_empty(sum(t.numel() for t in outputs))
    sizes = _splits(outputs, inputs)
    work = setting.call(received, torch.cat(inputs), name="all_to_all_single", **sizes).start()

    def unpack() -> None:
        parts = torch.split(received, sizes["output_split_sizes"])
        for output, part in zip(outputs, parts, strict=True):
            output.copy_(part)

    return Finished(work, unpack)
