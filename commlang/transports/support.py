"""What a backend can do, from the table in `support.toml`.

A question is about one operation by torch's name, on one dtype and device, with a reduce op where
it has one. "torch" stands in for a backend where the work is local: copy, accumulate, scale, fill.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from commlang.records import record
from commlang.version import TORCH

TABLE = Path(__file__).with_name("support.toml")
LOCAL = "torch"

ALIASES = {
    "all_gather_into_tensor": "all_gather_single",
    "reduce_scatter_tensor": "reduce_scatter_single",
}
_LOWERED = {
    "all_gather": "all_gather_single",
    "reduce_scatter": "all_reduce",
    "all_to_all": "all_to_all_single",
}


class Aspect(StrEnum):
    """Why a backend refuses an operation."""

    OPERATION = "operation"
    DTYPE = "dtype"
    OP = "reduce op"
    DEVICE = "device"


@record
class Backing:
    """What a backend can do: in general, and for the operations that differ."""

    docs: str
    devices: frozenset[str]
    dtypes: frozenset[str]
    reduce: dict[str, frozenset[str]]
    since: dict[str, tuple[int, ...]]
    operations: dict[str, Backing]

    def of(self, operation: str) -> Backing:
        """What holds for an operation."""
        return self.operations.get(operation, self)


def called(operation: str, backend: str, *, uneven: bool = False) -> str:
    """The operation that the executor really calls for one of a pattern.

    Lists of tensors of different lengths are more than any backend but NCCL takes: they go as one
    tensor, padded, with split sizes, or reduced as a whole.
    """
    name = ALIASES.get(operation, operation)
    return _LOWERED.get(name, name) if uneven and backend != "nccl" else name


def refusal(
    backend: str,
    operation: str,
    dtype: str | None = None,
    op: str | None = None,
    device: str = "cpu",
    torch_version: str = TORCH,
) -> Aspect | None:
    """Why a backend refuses an operation, None if it does not.

    `operation` is torch's name, as `called` gives it. Raises KeyError for an unknown backend.
    """
    whole = backings()[backend]
    backing, version = whole.of(operation), _version(torch_version)
    if device not in backing.devices:
        return Aspect.DEVICE
    if version < whole.since.get(operation, ()):
        return Aspect.OPERATION
    if op is not None:
        if op not in backing.reduce or version < whole.since.get(op, ()):
            return Aspect.OP
        if dtype is not None and dtype in backing.dtypes and dtype not in backing.reduce[op]:
            return Aspect.OP
    return Aspect.DTYPE if dtype is not None and dtype not in backing.dtypes else None


def supports(
    backend: str,
    operation: str,
    dtype: str | None = None,
    op: str | None = None,
    device: str = "cpu",
    torch_version: str = TORCH,
) -> bool:
    """Whether a backend can do an operation; raises KeyError for an unknown backend."""
    return refusal(backend, operation, dtype, op, device, torch_version) is None


def since(backend: str, name: str) -> str | None:
    """The release of torch from which on a backend has an operation or a reduce op, if told."""
    release = backings()[backend].since.get(name)
    return ".".join(map(str, release)) if release else None


def dtypes_of(backend: str, operation: str, op: str | None = None) -> frozenset[str]:
    """The dtypes on which a backend does an operation, with a reduce op if one is given."""
    backing = backings()[backend].of(operation)
    return backing.dtypes & backing.reduce.get(op, frozenset()) if op else backing.dtypes


def ops_of(backend: str, operation: str, dtype: str, torch_version: str = TORCH) -> list[str]:
    """The reduce ops with which a backend does an operation on a dtype."""
    whole = backings()[backend]
    backing, version = whole.of(operation), _version(torch_version)
    known = [op for op in backing.reduce if version >= whole.since.get(op, ())]
    return [op for op in known if dtype in backing.reduce[op] & backing.dtypes]


@cache
def backings() -> dict[str, Backing]:
    """The table, by backend."""
    import tomllib

    data = tomllib.loads(TABLE.read_text("utf-8"))
    families: dict[str, list[str]] = data.pop("families")
    return {name: _backing(entry, None, families) for name, entry in data.items()}


def _backing(entry: dict[str, Any], above: Backing | None, families: Any) -> Backing:
    """A table's entry; what an operation does not say itself is as it is `above`."""

    def names(listed: list[str]) -> frozenset[str]:
        return frozenset(dtype for name in listed for dtype in families.get(name, [name]))

    reduce = {op: names(listed) for op, listed in entry.get("reduce", {}).items()}
    backing = Backing(
        docs=entry["docs"] if above is None else above.docs,
        devices=frozenset(entry["devices"]) if "devices" in entry or not above else above.devices,
        dtypes=names(entry["dtypes"]) if "dtypes" in entry or not above else above.dtypes,
        reduce={**above.reduce, **reduce} if above else reduce,
        since={name: _version(text) for name, text in entry.get("since", {}).items()},
        operations={},
    )
    for name, inner in entry.get("operations", {}).items():
        backing.operations[name] = _backing(inner, backing, families)
    return backing


def _version(text: str) -> tuple[int, ...]:
    """`2.13.0+cpu` as numbers that compare; whatever follows the second is left out."""
    return tuple(int(part) for part in text.split("+")[0].split(".")[:2])
