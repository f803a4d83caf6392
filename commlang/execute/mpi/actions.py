"""Each operation of `torch.distributed` as one of MPI, on the tensors of one rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from mpi4py import MPI

from commlang.execute.mpi.action import Action
from commlang.execute.mpi.arithmetic import arithmetic, kind_of
from commlang.execute.mpi.buffers import Staging, numbers, parts, rows, spec

if TYPE_CHECKING:
    from collections.abc import Sequence

Tensors = list[torch.Tensor]


class Actions:
    """Makes the operations of one communicator; ranks and roots are those of its group.

    Raises ValueError for tensors, dtypes and ops that cannot be done, before anything is sent.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm: Any = comm  # whose types do not say that a buffer may be described by a list
        self._rank, self._size = comm.rank, comm.size

    def all_reduce(self, tensor: torch.Tensor, op: dist.ReduceOp) -> Action:
        """`op` over all ranks' tensors, in place."""
        stage, whole, how = self._reduced(tensor, op)
        buffers = (MPI.IN_PLACE, numbers(whole))
        return self._action("all_reduce", stage, [tensor], *buffers, how, call="allreduce")

    def reduce(self, tensor: torch.Tensor, op: dist.ReduceOp, root: int) -> Action:
        """`op` over all ranks' tensors, in the root's; the others keep theirs."""
        at_root = root == self._rank
        stage, whole, how = self._reduced(tensor, op, made=at_root)
        buffers = (MPI.IN_PLACE, numbers(whole)) if at_root else (numbers(whole), None)
        return self._action("reduce", stage, [tensor], *buffers, how, root)

    def reduce_scatter(self, output: torch.Tensor, inputs: Tensors, op: dist.ReduceOp) -> Action:
        """`op` over the tensors that all ranks list for this one."""
        inputs, (output,) = _real(inputs, op), _real([output], op)
        self._lists("reduce_scatter", inputs, output)
        how = arithmetic(output.dtype, op)
        stage = Staging()
        self._divide_last(stage, made := stage.made(output, how.dtype), mean=how.mean)
        given = stage.given_list(inputs, how.dtype)
        counts = [tensor.numel() for tensor in inputs]
        arguments = (numbers(given), numbers(made), counts, how.op)
        return self._action("reduce_scatter", stage, [output], *arguments)

    def reduce_scatter_single(
        self, output: torch.Tensor, tensor: torch.Tensor, op: dist.ReduceOp
    ) -> Action:
        """`op` over this rank's share of all ranks' tensors."""
        output, tensor = _real([output, tensor], op)
        self._fits("reduce_scatter_single", tensor.numel(), self._size * output.numel())
        how = arithmetic(output.dtype, op)
        stage = Staging()
        self._divide_last(stage, made := stage.made(output, how.dtype), mean=how.mean)
        memory, *_ = numbers(stage.given(tensor, how.dtype))
        _, count, datatype = buffer = numbers(made)
        arguments = ([memory, count, datatype], buffer, how.op)  # counts are per rank
        return self._action(
            "reduce_scatter_single", stage, [output], *arguments, call="reduce_scatter_block"
        )

    def broadcast(self, tensor: torch.Tensor, root: int) -> Action:
        """The root's tensor, everywhere."""
        stage = Staging()
        whole = (stage.given if root == self._rank else stage.made)(tensor)
        return self._action("broadcast", stage, [tensor], spec(whole), root, call="bcast")

    def all_gather_single(self, output: torch.Tensor, tensor: torch.Tensor) -> Action:
        """All ranks' tensors, one after the other in one."""
        stage = Staging()
        self._fits("all_gather_single", output.numel(), self._size * tensor.numel())
        (memory, count, datatype), (made, *_) = spec(stage.given(tensor)), spec(stage.made(output))
        buffers = ([memory, count, datatype], [made, count, datatype])  # counts are per rank
        return self._action("all_gather_single", stage, [output], *buffers, call="allgather")

    def all_gather(self, outputs: Tensors, tensor: torch.Tensor) -> Action:
        """All ranks' tensors, which may differ in length, in a list."""
        self._lists("all_gather", outputs, tensor)
        stage = Staging()
        made = parts(stage.made_list(outputs), _lengths(outputs))
        buffers = (spec(stage.given(tensor)), made)
        return self._action("all_gather", stage, outputs, *buffers, call="allgatherv")

    def gather(self, tensor: torch.Tensor, outputs: Tensors, root: int) -> Action:
        """All ranks' tensors in a list of the root's, which is empty elsewhere."""
        stage = Staging()
        if at_root := root == self._rank:
            self._lists("gather", outputs, tensor)
        made = parts(stage.made_list(outputs), _lengths(outputs)) if at_root else None
        buffers = (spec(stage.given(tensor)), made, root)
        return self._action("gather", stage, outputs, *buffers, call="gatherv")

    def scatter(self, output: torch.Tensor, inputs: Tensors, root: int) -> Action:
        """Each rank's tensor from a list of the root's, which is empty elsewhere."""
        stage = Staging()
        if at_root := root == self._rank:
            self._lists("scatter", inputs, output)
        given = parts(stage.given_list(inputs), _lengths(inputs)) if at_root else None
        buffers = (given, spec(stage.made(output)), root)
        return self._action("scatter", stage, [output], *buffers, call="scatterv")

    def all_to_all(self, outputs: Tensors, inputs: Tensors) -> Action:
        """A tensor from each rank and one for each."""
        self._lists("all_to_all", inputs, outputs[self._rank])
        self._lists("all_to_all", outputs, inputs[self._rank])
        stage = Staging()
        given = parts(stage.given_list(inputs), _lengths(inputs))
        made = parts(stage.made_list(outputs), _lengths(outputs))
        return self._action("all_to_all", stage, outputs, given, made, call="alltoallv")

    def all_to_all_single(
        self,
        output: torch.Tensor,
        tensor: torch.Tensor,
        output_splits: Sequence[int] = (),
        input_splits: Sequence[int] = (),
    ) -> Action:
        """The same with the rows of one tensor, evenly if there are no splits."""
        stage = Staging()
        given = parts(stage.given(tensor), rows(tensor, input_splits, self._size))
        made = parts(stage.made(output), rows(output, output_splits, self._size))
        return self._action("all_to_all_single", stage, [output], given, made, call="alltoallv")

    def barrier(self) -> Action:
        """Nothing, once all ranks are there."""
        return self._action("barrier", Staging(), [])

    def send(self, tensor: torch.Tensor, peer: int, tag: int) -> Action:
        """A message to `peer`."""
        stage = Staging()
        return self._action("send", stage, [tensor], spec(stage.given(tensor)), peer, tag)

    def recv(self, tensor: torch.Tensor, peer: int | None, tag: int) -> Action:
        """A message from `peer`, or from whoever sends one."""
        stage = Staging()
        buffer = spec(stage.made(tensor))
        source = MPI.ANY_SOURCE if peer is None else peer
        message = (buffer[1], buffer[2])
        return self._action("recv", stage, [tensor], buffer, source, tag, message=message)

    def _reduced(
        self, tensor: torch.Tensor, op: dist.ReduceOp, *, made: bool = True
    ) -> tuple[Staging, torch.Tensor, MPI.Op]:
        """A tensor to be reduced in place, staged in the dtype that MPI computes in."""
        if tensor.is_complex():
            (tensor,) = _real([tensor], op)
        how, stage = arithmetic(tensor.dtype, op), Staging()
        whole = (stage.updated if made else stage.given)(tensor, how.dtype)
        self._divide_last(stage, whole, mean=how.mean and made)
        return stage, whole, how.op

    def _divide_last(self, stage: Staging, whole: torch.Tensor, *, mean: bool) -> None:
        if mean:  # before it is copied, so that it is rounded once
            stage.after.insert(0, lambda: whole.detach().div_(self._size))

    def _lists(self, name: str, tensors: Tensors, own: torch.Tensor) -> None:
        """Raise ValueError unless a list has a tensor for each rank, this one's as long as `own`.

        MPI would write past the end of a tensor that is too short.
        """
        self._fits(f"the list of {name}", len(tensors), self._size)
        self._fits(name, tensors[self._rank].numel(), own.numel())

    def _fits(self, what: str, number: int, wanted: int) -> None:
        if number != wanted:
            raise ValueError(f"commlang_mpi: {what} needs {wanted}, but is given {number}")

    def _action(
        self,
        name: str,
        stage: Staging,
        results: Tensors,
        *arguments: Any,
        call: str = "",
        message: tuple[int, MPI.Datatype] | None = None,
    ) -> Action:
        return Action(
            name,
            getattr(self._comm, f"I{call or name}"),
            getattr(self._comm, (call or name).capitalize()),
            arguments,
            stage.before,
            stage.after,
            results,
            stage.held,
            message,
        )


def _lengths(tensors: Tensors) -> list[int]:
    return [tensor.numel() for tensor in tensors]


def _real(tensors: Tensors, op: dist.ReduceOp) -> Tensors:
    """Complex numbers as pairs of real ones, for what treats both parts alike."""
    if not any(tensor.is_complex() for tensor in tensors):
        return tensors
    if kind_of(op) not in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
        raise ValueError(f"commlang_mpi has no {op} of complex numbers")
    return [torch.view_as_real(tensor) for tensor in tensors]
