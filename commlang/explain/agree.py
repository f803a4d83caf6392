"""Whether calls that meet agree, as far as it was recorded. Roots and reduce ops are not."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from commlang.explain.dump import Entry, Sizes

_GATHERS = ("all_gather", "_all_gather", "ALLGATHER")
_SCATTERS = ("reduce_scatter", "_reduce_scatter", "REDUCE_SCATTER")
SYMMETRIC = ("all_", "allreduce", "barrier", *_GATHERS, *_SCATTERS)
"""Beginnings of the names of collectives that end on no rank before all have come."""


def disagreement(calls: Mapping[int, Entry], size: int) -> tuple[str, dict[int, str]] | None:
    """What calls on a group of `size` ranks differ in, and for each rank what it has.

    None if they agree. Sizes are compared by their number of elements, as shapes may differ.
    """
    if len({entry.name for entry in calls.values()}) > 1:
        return "operation", {rank: entry.name for rank, entry in calls.items()}
    for what, told in (("dtype", _dtype), ("size", _size)):
        found = {rank: told(entry) for rank, entry in calls.items()}
        if len({value for value in found.values() if value}) > 1:
            return what, {rank: calls[rank].data for rank in calls}
    return _wrong_total(calls, size) or _wrong_root(calls, size)


def odd_ones(values: Mapping[int, str]) -> tuple[int, ...]:
    """The ranks that differ from most; none if no value is that of more than half of them."""
    counts = {value: sum(v == value for v in values.values()) for value in values.values()}
    common = max(counts, key=lambda value: counts[value])
    if 2 * counts[common] <= len(values):
        return ()
    return tuple(rank for rank, value in values.items() if value != common)


def same_call(one: Entry, other: Entry) -> bool:
    """Whether two calls could meet, as far as it was recorded."""
    return disagreement({0: one, 1: other}, 0) is None


def same_size(send: Entry, recv: Entry) -> bool:
    """Whether a send and a recv move as many elements of one dtype."""
    return _dtype(send) == _dtype(recv) and sum(_elements(send.inputs)) == sum(
        _elements(recv.outputs)
    )


def _dtype(entry: Entry) -> str:
    return (entry.input_dtypes or entry.output_dtypes or ("",))[0]


def _size(entry: Entry) -> str:
    """What has to be equal on all ranks, as text; empty if nothing has."""
    name = entry.name
    if name in ("gather", *_GATHERS) or name.startswith(_GATHERS):
        # Lists of tensors may be uneven; each rank then has all lengths.
        lengths = _elements(entry.outputs)
        uneven = name == "all_gather" and len(set(lengths)) > 1
        return str(sorted(lengths) if uneven else _elements(entry.inputs)[:1])
    if name == "scatter" or name.startswith(_SCATTERS):
        lengths = _elements(entry.inputs)
        uneven = name == "reduce_scatter" and len(set(lengths)) > 1
        return str(sorted(lengths) if uneven else _elements(entry.outputs)[:1])
    if name.startswith(("all_to_all", "barrier")) or entry.is_message:
        return ""
    return str(_elements(entry.inputs or entry.outputs)) if entry.inputs or entry.outputs else ""


def _elements(sizes: Sizes) -> list[int]:
    return [prod(size) for size in sizes]


def _wrong_total(calls: Mapping[int, Entry], size: int) -> tuple[str, dict[int, str]] | None:
    """An all_to_all of all ranks sends as many elements as it receives."""
    if len(calls) != size or not all(e.name.startswith("all_to_all") for e in calls.values()):
        return None
    sent = sum(sum(_elements(e.inputs)) for e in calls.values())
    received = sum(sum(_elements(e.outputs)) for e in calls.values())
    if sent == received:
        return None
    return "size", {rank: entry.data for rank, entry in calls.items()}


_LISTS: dict[str, Callable[[Entry], Sizes]] = {
    "scatter": lambda entry: entry.inputs,
    "gather": lambda entry: entry.outputs,
}


def _wrong_root(calls: Mapping[int, Entry], size: int) -> tuple[str, dict[int, str]] | None:
    """Of a scatter or a gather one rank has the list."""
    listed = _LISTS.get(next(iter(calls.values())).name)
    if listed is None or len(calls) != size:
        return None
    roots = [rank for rank, entry in calls.items() if listed(entry)]
    if len(roots) == 1:
        return None
    return "root", {r: "as the root" if r in roots else "not as the root" for r in calls}
