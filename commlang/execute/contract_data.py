"""The tensors that contracts speak of: parameters, and what is computed from them when needed.

While a contract is evaluated, each tensor is a `View` whose buffer numbers an entry of `Tensors`,
so that indexing, chunks and shapes cost nothing and mean what they mean in the pattern. Data
are fetched and reduced only when two tensors are compared, one rank at a time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from commlang.execute.memory import torch_dtype
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlang.expand.values import View

Fetch: TypeAlias = Callable[[int, str], torch.Tensor]
"""The tensor of a rank by its name, in its declared shape."""

CACHE_BYTES = 256 << 20


@record
class Given:
    """A tensor parameter of the pattern on one rank, at entry or at the end."""

    name: str
    rank: int
    old: bool


class Tensors:
    """Buffers by number: first those of the parameters, by time and rank, then computed ones.

    `parameters` are views over the lanes of all ranks. Entry values come through a cache of
    `CACHE_BYTES`, since one is often asked for again and costs time to make.
    """

    def __init__(
        self, parameters: Mapping[str, View], world: int, old: Fetch, final: Fetch
    ) -> None:
        self.parameters = parameters
        self._names = list(parameters)
        self._world = world
        self._old = old
        self._final = final
        self._computed: list[Callable[[], torch.Tensor]] = []
        self._cache: OrderedDict[tuple[int, str], torch.Tensor] = OrderedDict()

    def number(self, name: str, *, old: bool) -> int:
        """The buffer of a parameter on rank 0; those of the next ranks follow."""
        return (2 * self._names.index(name) + old) * self._world

    def given(self, buffer: int) -> Given | None:
        """The parameter behind a buffer; None if it is computed."""
        place, rank = divmod(buffer, self._world)
        if place >= 2 * len(self._names):
            return None
        return Given(self._names[place // 2], rank, bool(place % 2))

    def add(self, compute: Callable[[], torch.Tensor]) -> int:
        """A buffer whose elements are computed when they are asked for."""
        self._computed.append(compute)
        return 2 * len(self._names) * self._world + len(self._computed) - 1

    def load(self, view: View) -> torch.Tensor:
        """The elements of a view on a single lane, in its shape.

        A parameter keeps its dtype; a computed tensor is float64, int64 or complex128.
        """
        shape: Any = view.shape
        strides: Any = view.strides
        flat = self._flat(int(view.buffer))
        return flat.as_strided(shape, strides, flat.storage_offset() + int(view.offset))

    def _flat(self, buffer: int) -> torch.Tensor:
        given = self.given(buffer)
        if given is None:
            first = 2 * len(self._names) * self._world
            return self._computed[buffer - first]().reshape(-1)
        fetched = self._entry(given) if given.old else self._final(given.rank, given.name)
        wanted = torch_dtype(self.parameters[given.name].dtype)
        assert fetched.dtype == wanted, f"{given} is {fetched.dtype}, not {wanted}"
        return fetched.detach().reshape(-1)

    def _entry(self, given: Given) -> torch.Tensor:
        key = (given.rank, given.name)
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        tensor = self._cache[key] = self._old(given.rank, given.name)
        held = sum(t.nbytes for t in self._cache.values())
        while held > CACHE_BYTES and len(self._cache) > 1:
            held -= self._cache.popitem(last=False)[1].nbytes
        return tensor
