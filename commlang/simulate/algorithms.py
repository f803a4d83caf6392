"""Backend collectives as rounds of messages: which edges they use, and how often.

Every algorithm works on a table of members, one row for each of several groups that do the same
side by side, and returns its steps. N stands for the bytes of the longer side of a call's data:
the tensor of all_reduce, broadcast and reduce, else what all members together hold.

One round costs alpha + k beta (Hockney) with alpha = L: backends pay the overhead once a call, not
each round, which adds 2 o (NCCL's model is the same, baseLat + nsteps lat, in
https://github.com/NVIDIA/nccl/blob/master/src/graph/tuning.cc). Sources of the formulas:

- ring, doubling (recursive doubling and halving, Bruck), tree (binomial) and scatter_gather:
  Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in MPICH,
  IJHPCA 19 (2005), https://doi.org/10.1177/1094342005051521; Chan et al., Collective
  communication: theory, practice, and experience, CCPE 19 (2007), https://doi.org/10.1002/cpe.1206;
- chain, cut into as many segments as is best: Pješivac-Grbović et al., Performance analysis of MPI
  collective operations, Cluster Computing 10 (2007), https://doi.org/10.1007/s10586-007-0012-0;
- tree of all_reduce, two binary trees of half the data each: Sanders, Speck and Träff, Two-tree
  algorithms for full bandwidth broadcast, reduction and scan, Parallel Computing 35 (2009),
  https://doi.org/10.1016/j.parco.2009.09.001, as in NCCL since 2.4;
- dissemination: Hensgen, Finkel and Manber, Two algorithms for barrier synchronization, IJPP 17
  (1988), https://doi.org/10.1007/BF01379320;
- hierarchical: reduce_scatter inside each node, all_reduce between the nodes of each place,
  all_gather inside (NCCL and Horovod do so between nodes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from commlang.operations import Kind
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.program.columns import Array

TREE_EFFICIENCY = 0.92
"""The part of a ring's bandwidth that NCCL expects of its trees:
https://github.com/NVIDIA/nccl/blob/master/src/graph/tuning.cc."""
_SHIFTS = 1 << 20
"""Pairs of a direct all_to_all that are looked at; of more, some distances stand for all."""


@record
class Step:
    """Messages of a part of an algorithm, from `src` to `dst`, `part` N bytes each in all.

    It takes `rounds` alpha + `serial` N beta of its slowest edge. With `stages`, it is a pipeline
    so long. With `each`, messages start at once and every rank's leave and come one after the
    other: alpha and, for each, g + `part` N beta; each that is listed stands for `weight`.
    """

    src: Array
    dst: Array
    part: float
    rounds: float = 0.0
    serial: float = 0.0
    stages: int = 0
    each: bool = False
    weight: float = 1.0


Algorithm: TypeAlias = "Callable[[Array, int], list[Step]]"
"""From members, an int array (groups, members), and the root's place to the steps."""


def _log2(n: int) -> int:
    return (n - 1).bit_length()


def _ring(members: Array, times: int) -> Step:
    n = members.shape[1]
    part = times * (n - 1) / n
    target = np.roll(members, -1, axis=1)
    return Step(members.ravel(), target.ravel(), part, times * (n - 1), part)


def ring_all_reduce(members: Array, root: int) -> list[Step]:
    """2 (n - 1) alpha + 2 (n - 1) / n N beta."""
    return [_ring(members, 2)]


def ring(members: Array, root: int) -> list[Step]:
    """(n - 1) alpha + (n - 1) / n N beta."""
    return [_ring(members, 1)]


def two_trees(members: Array, root: int) -> list[Step]:
    """2 log n alpha + 2 N beta, of the bandwidth that trees reach."""
    n = members.shape[1]
    child: Array = np.arange(n, dtype=np.int64)
    low: Array = np.where(child, child & -child, 1 << _log2(n))  # lowest bit: leaves are odd
    up: Array = np.where(child & (low << 1), child - low, child + low)
    up = np.where(up >= n, child - low, up)
    inner = child[1:]
    steps: list[Step] = []
    for shift in (0, 1):  # the second tree's leaves are nodes of the first
        a, b = members[:, (inner + shift) % n].ravel(), members[:, (up[1:] + shift) % n].ravel()
        rounds, serial = (2 * _log2(n), 2 / TREE_EFFICIENCY) if shift == 0 else (0, 0.0)
        src, dst = np.concatenate([a, b]), np.concatenate([b, a])
        steps.append(Step(src, dst, 0.5, rounds, serial))
    return steps


def doubling_all_reduce(members: Array, root: int) -> list[Step]:
    """log n (alpha + N beta)."""
    return [_exchange(members, 1 << k, 1.0) for k in range(_log2(members.shape[1]))]


def doubling(members: Array, root: int) -> list[Step]:
    """log n alpha + (n - 1) / n N beta."""
    n, steps, done = members.shape[1], list[Step](), 1
    while done < n:
        size = min(done, n - done)
        steps.append(_exchange(members, done, size / n))
        done += size
    return steps


def bruck(members: Array, root: int) -> list[Step]:
    """log n (alpha + N / 2 beta)."""
    return [_exchange(members, 1 << k, 0.5) for k in range(_log2(members.shape[1]))]


def dissemination(members: Array, root: int) -> list[Step]:
    """log n alpha."""
    return [_exchange(members, 1 << k, 0.0) for k in range(_log2(members.shape[1]))]


def _exchange(members: Array, distance: int, part: float) -> Step:
    target = np.roll(members, -distance, axis=1)
    return Step(members.ravel(), target.ravel(), part, 1, part)


def _tree(members: Array, root: int, *, inward: bool, parts: bool) -> list[Step]:
    """A binomial tree; with `parts`, each edge carries only what its subtree is to get."""
    n = members.shape[1]
    placed = np.roll(members, -root, axis=1)
    steps: list[Step] = []
    for k in reversed(range(_log2(n))):
        child: Array = np.arange(1 << k, n, 2 << k, dtype=np.int64)
        part = min(1 << k, n - (1 << k)) / n if parts else 1.0
        src, dst = placed[:, child - (1 << k)].ravel(), placed[:, child].ravel()
        steps.append(Step(*((dst, src) if inward else (src, dst)), part, 1, part))
    return steps


def _chain(members: Array, root: int, *, inward: bool) -> list[Step]:
    n = members.shape[1]
    placed = np.roll(members, -root, axis=1)
    src, dst = placed[:, :-1].ravel(), placed[:, 1:].ravel()
    return [Step(*((dst, src) if inward else (src, dst)), 1.0, n - 1, 1.0, stages=n - 2)]


def tree_broadcast(members: Array, root: int) -> list[Step]:
    """log n (alpha + N beta)."""
    return _tree(members, root, inward=False, parts=False)


def tree_reduce(members: Array, root: int) -> list[Step]:
    """log n (alpha + N beta)."""
    return _tree(members, root, inward=True, parts=False)


def tree_scatter(members: Array, root: int) -> list[Step]:
    """log n alpha + (n - 1) / n N beta."""
    return _tree(members, root, inward=False, parts=True)


def tree_gather(members: Array, root: int) -> list[Step]:
    """log n alpha + (n - 1) / n N beta."""
    return _tree(members, root, inward=True, parts=True)


def chain_broadcast(members: Array, root: int) -> list[Step]:
    """(n - 1) alpha + N beta + 2 sqrt((n - 2) alpha N beta)."""
    return _chain(members, root, inward=False)


def chain_reduce(members: Array, root: int) -> list[Step]:
    """(n - 1) alpha + N beta + 2 sqrt((n - 2) alpha N beta)."""
    return _chain(members, root, inward=True)


def scatter_gather(members: Array, root: int) -> list[Step]:
    """(log n + n - 1) alpha + 2 (n - 1) / n N beta."""
    return [*tree_scatter(members, root), *ring(members, root)]


def reduce_gather(members: Array, root: int) -> list[Step]:
    """(n - 1 + log n) alpha + 2 (n - 1) / n N beta."""
    return [*ring(members, root), *tree_gather(members, root)]


def direct(members: Array, root: int) -> list[Step]:
    """alpha + the sum of g + N / n beta over a rank's peers."""
    groups, n = members.shape
    most = max(1, min(n - 1, _SHIFTS // (groups * n)))
    shifts = np.unique(np.linspace(1, n - 1, most, dtype=np.int64))
    src = np.tile(members.ravel(), len(shifts))
    dst = np.concatenate([np.roll(members, -int(s), axis=1).ravel() for s in shifts])
    weight = (n - 1) / len(shifts)
    return [Step(src, dst, weight / n, rounds=1, each=True, weight=weight)]


def _star(members: Array, root: int, *, inward: bool) -> list[Step]:
    n = members.shape[1]
    leaves = np.delete(members, root, axis=1)
    roots = np.repeat(members[:, root], n - 1)
    pair = (leaves.ravel(), roots) if inward else (roots, leaves.ravel())
    return [Step(*pair, 1 / n, rounds=1, each=True)]


def from_root(members: Array, root: int) -> list[Step]:
    """alpha + the sum of g + N / n beta over the leaves."""
    return _star(members, root, inward=False)


def to_root(members: Array, root: int) -> list[Step]:
    """alpha + the sum of g + N / n beta over the leaves."""
    return _star(members, root, inward=True)


ALGORITHMS: dict[Kind, dict[str, Algorithm]] = {
    Kind.ALL_REDUCE: {"ring": ring_all_reduce, "tree": two_trees, "doubling": doubling_all_reduce},
    Kind.REDUCE: {"tree": tree_reduce, "chain": chain_reduce, "reduce_gather": reduce_gather},
    Kind.BROADCAST: {
        "tree": tree_broadcast,
        "chain": chain_broadcast,
        "scatter_gather": scatter_gather,
    },
    Kind.SCATTER: {"direct": from_root, "tree": tree_scatter},
    Kind.GATHER: {"direct": to_root, "tree": tree_gather},
    Kind.ALL_GATHER: {"ring": ring, "doubling": doubling},
    Kind.REDUCE_SCATTER: {"ring": ring, "doubling": doubling},
    Kind.ALL_TO_ALL: {"direct": direct, "bruck": bruck},
    Kind.BARRIER: {"dissemination": dissemination},
}
"""What each collective may run by; the fastest for a size is taken, unless one is asked for."""

HIERARCHICAL = "hierarchical"
"""A further algorithm of all_reduce, for groups that have as many members on each node."""


def hierarchical(nodes: Array, between: Algorithm) -> list[Step]:
    """By members (nodes, members of a node): ring inside, `between` for each place, ring inside."""
    size = nodes.shape[1]
    outer = [
        Step(s.src, s.dst, s.part / size, s.rounds, s.serial / size, s.stages, s.each, s.weight)
        for s in between(nodes.T, 0)
    ]
    return [_ring(nodes, 2), *outer]
