"""Externs that contracts call, after a run: called again, on copies of what they read."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import torch

from commlang.execute import contract_arithmetic as arithmetic
from commlang.execute.memory import torch_dtype
from commlang.expand import arrays
from commlang.expand.binding import handed_on, is_tensor
from commlang.expand.values import take
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from commlang.contracts.computed import Called
    from commlang.execute.contract_data import Tensors


class Unchecked(Exception):
    """Why data cannot tell whether a contract holds."""


@record
class Externs:
    """The Python callables of a rank by the names of externs; no others of its externs ran."""

    rank: int
    callables: Mapping[str, Callable[..., Any]]


class ScratchCall:
    """A call of an extern on one lane, made once, when a result of it is asked for.

    Only a rank's own calls can be made on it: the externs of others have data of their own, as
    weights. Without a callable, an extern leaves what it updates, as it did in the run.
    """

    def __init__(
        self, tensors: Tensors, externs: Externs, call: Called, lane: int, rank: int
    ) -> None:
        self._tensors = tensors
        self._externs = externs
        self._call = call
        self._lane = lane
        self._rank = rank
        self._results: list[torch.Tensor | None] | None = None

    def result(self, number: int) -> torch.Tensor:
        """What the call writes there, in its shape, widened; raises Unchecked if it cannot tell."""
        if self._results is None:
            self._results = self._run()
        found = self._results[number]
        if found is None:
            name = self._call.extern.node.name
            raise Unchecked(f"extern `{name}` has no Python callable, so that it wrote nothing")
        return found

    def _run(self) -> list[torch.Tensor | None]:
        call, name = self._call, self._call.extern.node.name
        function = self._externs.callables.get(name)
        given = {operand: self._copy(take(view, self._lane)) for operand, view in call.read}
        if function is None:
            return [
                arithmetic.widen(given[made.operand], made.dtype) if made.operand in given else None
                for made in call.made
            ]
        device = next(iter(given.values())).device
        for made in call.made:
            if made.operand in given:
                continue
            shape = [int(arrays.lane(dim, self._lane)) for dim in made.shape]
            given[made.operand] = torch.zeros(shape, dtype=torch_dtype(made.dtype), device=device)
        self._apply(name, function, given)
        return [arithmetic.widen(given[made.operand], made.dtype) for made in call.made]

    def _copy(self, view: Any) -> torch.Tensor:
        loaded = arithmetic.cast(self._tensors.load(view), view.dtype)
        return loaded.clone(memory_format=torch.contiguous_format)

    def _apply(
        self, name: str, function: Callable[..., Any], given: dict[int, torch.Tensor]
    ) -> None:
        if self._rank != self._externs.rank:
            reason = f"only rank {self._rank} can call its `{name}` again"
            raise Unchecked(reason)
        operands = iter(sorted(given))
        values = [
            given[next(operands)] if is_tensor(p) else self._number(p.target.id)
            for p in handed_on(self._call.extern.node.params)
        ]
        try:
            function(*values)
        except Exception as error:
            raise Unchecked(f"`{name}` failed: {type(error).__name__}: {error}") from error

    def _number(self, name: str) -> Any:
        value = arrays.lane(self._call.numbers[name], self._lane)
        return float(value) if isinstance(value, Fraction) else value
