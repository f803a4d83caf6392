"""The values of the reference interpreter: plain Python, one rank at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fractions import Fraction


class Fault(Exception):
    """The pattern does something on this rank that it must not."""


@dataclass(eq=False)
class Buffer:
    """Memory made by one declaration, at one time that it was reached."""

    name: str
    dtype: str


@dataclass(frozen=True, eq=False)
class Tensor:
    """A view, as the numbers of the elements of its buffer."""

    buffer: Buffer
    index: np.ndarray[Any, Any]

    @classmethod
    def new(cls, name: str, dtype: str, shape: tuple[int, ...]) -> Tensor:
        if any(size < 0 for size in shape):
            raise Fault("negative dim")
        return cls(Buffer(name, dtype), np.arange(int(np.prod(shape))).reshape(shape))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.index.shape

    def contiguous(self) -> bool:
        flat = self.index.reshape(-1)
        return bool((np.diff(flat) == 1).all())

    def get(self, subs: list[Any]) -> Tensor:
        if len(subs) > len(self.shape):
            raise Fault("too many indices")
        return Tensor(self.buffer, self.index[tuple(subs)])


@dataclass(frozen=True, eq=False)
class Chunks:
    """`tensor.chunks(k, dim)`."""

    tensor: Tensor
    k: int
    dim: int

    def bounds(self) -> list[int]:
        size = self.tensor.shape[self.dim]
        lengths = [size // self.k + (1 if i < size % self.k else 0) for i in range(self.k)]
        return [sum(lengths[:i]) for i in range(self.k + 1)]

    def run(self, low: int, high: int) -> Tensor:
        bounds = self.bounds()
        subs: list[Any] = [slice(None)] * self.dim
        return self.tensor.get([*subs, slice(bounds[low], bounds[high])])

    def __len__(self) -> int:
        return self.k

    def items(self) -> list[Tensor]:
        return [self.run(i, i + 1) for i in range(self.k)]


@dataclass(frozen=True)
class Group:
    """Members and the ranks of the pattern that named it, both as ranks of the world."""

    label: str
    members: tuple[int, ...]
    frame: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.members)

    def items(self) -> list[int]:
        return [self.frame.index(member) for member in self.members]


@dataclass(frozen=True)
class Op:
    name: str
    factor: Fraction | None = None


@dataclass(frozen=True)
class DTypeName:
    name: str


@dataclass(frozen=True, eq=False)
class Closure:
    """A `let` function with the names around it."""

    node: Any
    names: Any


@dataclass(eq=False)
class Construct:
    """A `parallel:` or a branch of one that is a sequence."""

    sequence: bool
    parent: Construct | None
    deferred: list[Event] = field(default_factory=list["Event"])


@dataclass(eq=False)
class Event:
    """What one statement does on one rank; ranks are those of the world."""

    kind: str
    name: str
    span: Any
    calls: tuple[Any, ...]
    nest: Construct | None = None
    peer: int = -1
    tag: int = 0
    group: tuple[str, tuple[int, ...]] | None = None
    op: Op | None = None
    dtype: str | None = None
    operands: list[tuple[Tensor, str]] = field(default_factory=list[tuple[Tensor, str]])
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    joined_by: Event | None = None
    asynchronous: bool = False


def items(value: Any) -> list[Any]:
    """The items of anything that is a list."""
    if isinstance(value, list):
        return value
    if isinstance(value, Chunks | Group):
        return value.items()
    raise Fault(f"{value} is no list")
