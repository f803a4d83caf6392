"""Classes of named fields that cost little to define: a command defines 150 before it works.

`dataclasses` compiles six methods for each frozen class, half a millisecond that every start pays.
A record is a dataclass with one compiled method, `__init__`, and shares the others. That nothing
assigns to its fields is left to the type checker.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """A dataclass with slots, equal to another of its class with equal fields, and hashable."""
    cls.__eq__, cls.__hash__ = _equal, _hash
    return _define(cls)


@dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(field,))
def entity(cls: type[T]) -> type[T]:
    """A dataclass with slots that is equal to itself only."""
    return _define(cls)


def _define(cls: type[T]) -> type[T]:
    if "__repr__" not in cls.__dict__:
        setattr(cls, "__repr__", _repr)  # noqa: B010 - its type is more than an instance's
    return dataclass(repr=False, eq=False, slots=True)(cls)


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, f.name) for f in fields(self) if f.compare])


def _equal(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


@recursive_repr()
def _repr(self: Any) -> str:
    told = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({told})"
