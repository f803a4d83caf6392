"""Which ranks to show of many: some of each kind, where ranks that do the same are of one kind."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from commlang.program import Program
    from commlang.program.columns import Array

FEW = 16
"""Worlds up to this are shown rank by rank."""
MOST_KINDS = 10
"""Kinds of which each gets a lane."""
MOST_CHOSEN = 64
"""Most ranks that are shown even if more are asked for."""


@record
class Gap:
    """Ranks that are not shown, between `first` and `last`, and whom they are like."""

    first: int
    last: int
    count: int
    words: str


@record
class Fold:
    """The ranks that are shown, in order, and the gaps between them."""

    shown: tuple[int, ...]
    gaps: tuple[Gap, ...]
    told: str = ""
    """What was taken for equal, empty if all ranks are shown."""


def fold(program: Program, wanted: Sequence[int] | None = None, needed: Iterable[int] = ()) -> Fold:
    """Choose the ranks to show: those `wanted`, else all of few or some of each kind of many.

    `needed` ranks are shown in any case.
    """
    if wanted is not None and len(wanted) <= MOST_CHOSEN:
        return Fold(tuple(sorted(set(wanted))), ())
    among = np.unique(np.array(wanted)) if wanted is not None else np.asarray(program.ranks)
    if len(among) <= FEW:
        return Fold(tuple(among.tolist()), ())
    kind, told = _kinds(program, among)
    _, first, size = np.unique(kind, return_index=True, return_counts=True)
    largest = np.lexsort((first, -size))[:MOST_KINDS]
    chosen = {0, 1, len(among) - 1, *first[largest].tolist()}
    chosen |= set(np.searchsorted(among, sorted(set(needed) & set(among.tolist()))).tolist())
    places = sorted(chosen)
    lead = {int(kind[at]): int(among[at]) for at in reversed(places)}
    gaps = [_gap(among[a + 1 : b], kind[a + 1 : b], lead) for a, b in pairwise(places) if b > a + 1]
    return Fold(tuple(int(among[at]) for at in places), tuple(gaps), told)


def _gap(ranks: Array, kind: Array, lead: dict[int, int]) -> Gap:
    """Ranks in a row that are not shown, and for each kind among them how many there are."""
    kinds, counts = np.unique(kind, return_counts=True)
    like: list[str] = []
    other = 0
    for one, count in zip(kinds.tolist(), counts.tolist(), strict=True):
        if one in lead and len(like) < 3:
            each = "" if len(kinds) == 1 else f"{count:,} "
            like.append(f"{each}like rank {lead[one]}")
        else:
            other += count
    if other:
        like.append(f"{other:,} others")
    first, last, count = int(ranks[0]), int(ranks[-1]), len(ranks)
    name = f"rank {first}" if count == 1 else f"{count:,} ranks, {first} to {last}"
    return Gap(first, last, count, f"{name}: {', '.join(like)}")


def _kinds(program: Program, among: Array) -> tuple[Array, str]:
    """A number for the kind of each rank, by as much of its lane as leaves few kinds."""
    at = np.searchsorted(program.ranks, among)
    found, told = np.zeros(len(among), dtype=np.uint64), ""
    for place in (program.key, program.site):
        for peer, words in (*_peers(program), (np.zeros_like(program.peer), "")):
            found, told = _signature(program, place, peer)[at], f"the same statements{words}"
            if len(np.unique(found)) <= MOST_KINDS:
                return _numbered(found), told
    return _numbered(found), told


def _peers(program: Program) -> tuple[tuple[Array, str], ...]:
    """Peers of messages as they are seen from each rank; of roots, whether it is the rank."""
    away = (program.peer - program.rank) % program.world
    root = (program.peer == program.rank).astype(np.int32)
    return (
        (np.where(program.is_message, away, root), " with the same relative peers"),
        (np.where(program.is_message, program.peer, root), " with the same peers"),
    )


def _numbered(values: Array) -> Array:
    return np.unique(values, return_inverse=True)[1].reshape(-1)


def _signature(program: Program, place: Array, peer: Array) -> Array:
    """A hash of each evaluated rank's events, equal for ranks that do the same.

    `place` says which event it is, `peer` whom it meets; of groups the size counts.
    """
    group = np.maximum(program.group, 0)
    size = np.asarray(program.groups.size(group)) if len(group) else group
    row = _mixed(_mixed(place.astype(np.uint64), peer), size)
    upto = np.concatenate([np.zeros(1, np.uint64), np.cumsum(row, dtype=np.uint64)])
    lane = upto[program.rank_start[1:]] - upto[program.rank_start[:-1]]
    return _mixed(lane, np.diff(program.rank_start))


def _mixed(value: Array, more: Array) -> Array:
    """Numbers hashed together with others, by the finaliser of splitmix64.

    https://prng.di.unimi.it/splitmix64.c
    """
    value = value * np.uint64(0x9E3779B97F4A7C15) + more.astype(np.int64).astype(np.uint64)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
