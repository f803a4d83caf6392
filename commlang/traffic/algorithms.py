"""Which algorithms collectives may run by, which each backend usually takes, and where from.

A backend chooses by size, world and topology; what is here is what it takes for large data on
ranks that it knows nothing about. Rings follow the order of the group's members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.diagnostics import did_you_mean
from commlang.errors import UsageError
from commlang.operations import OPERATIONS, Kind
from commlang.traffic import flows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlang.traffic.flows import Algorithm

ALGORITHMS: dict[Kind, dict[str, Algorithm]] = {
    Kind.ALL_REDUCE: {
        "ring": flows.ring_all_reduce,
        "tree": flows.tree_all_reduce,
        "doubling": flows.doubling_all_reduce,
        "direct": flows.whole_to_all,
    },
    Kind.REDUCE: {
        "tree": flows.tree_reduce,
        "chain": flows.chain_reduce,
        "ring": flows.ring_reduce,
        "direct": flows.to_root,
    },
    Kind.BROADCAST: {
        "tree": flows.tree_broadcast,
        "chain": flows.chain_broadcast,
        "direct": flows.from_root,
    },
    Kind.SCATTER: {"direct": flows.parts_from_root},
    Kind.GATHER: {"direct": flows.to_root},
    Kind.ALL_GATHER: {"ring": flows.ring_all_gather, "direct": flows.own_to_all},
    Kind.REDUCE_SCATTER: {
        "ring": flows.ring_reduce_scatter,
        "direct": flows.parts_to_all,
        "all_reduce": flows.ring_all_reduce,
    },
    Kind.ALL_TO_ALL: {"direct": flows.parts_to_all},
    Kind.BARRIER: {"dissemination": flows.dissemination},
}
"""The algorithms of each kind of collective; the first is taken where nothing else is said."""

SOURCES: dict[str, str] = {
    "ring": "Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of "
    "workstations, JPDC 69 (2009), https://doi.org/10.1016/j.jpdc.2008.09.002",
    "tree": "Thakur, Rabenseifner and Gropp, Optimization of collective communication operations "
    "in MPICH, IJHPCA 19 (2005), https://doi.org/10.1177/1094342005051521",
    "doubling": "the same, recursive doubling",
    "chain": "pipelined along the ring, as NCCL does broadcast and reduce: "
    "https://github.com/NVIDIA/nccl/blob/master/src/device/broadcast.h",
    "direct": "each pair by a message of its own, as NCCL's grouped sends and recvs: https://docs"
    ".nvidia.com/deeplearning/nccl/user-guide/docs/usage/p2p.html",
    "all_reduce": "gloo reduces the whole on every rank: "
    "https://github.com/pytorch/pytorch/pull/118911",
    "dissemination": "Hensgen, Finkel and Manber, Two algorithms for barrier synchronization, IJPP "
    "17 (1988), https://doi.org/10.1007/BF01379320",
}
"""Where each algorithm is described."""

USUAL: dict[str, dict[str, str]] = {
    # https://github.com/pytorch/gloo: allreduce.cc, reduce.cc, broadcast.cc, allgather.cc.
    # reduce is a ring reduce-scatter whose parts the root gathers.
    "gloo": {"reduce": "ring", "reduce_scatter": "all_reduce"},
    # https://github.com/NVIDIA/nccl: src/graph/tuning.cc gives broadcast and reduce the ring only.
    # A barrier is an all_reduce of one float; its four bytes are left out.
    "nccl": {"broadcast": "chain", "reduce": "chain"},
}
"""Where a backend differs from the first algorithm of each kind."""


def usual(backend: str | None = None, given: Mapping[str, str] | None = None) -> dict[Kind, str]:
    """The algorithm of each kind of collective that a backend takes, and what `given` says instead.

    `given` has names of operations as keys. Raises UsageError for an operation or an algorithm
    that is not known; a backend that is not known takes the first algorithm of each kind.
    """
    chosen = {kind: next(iter(known)) for kind, known in ALGORITHMS.items()}
    for settings in (USUAL.get(backend or "", {}), given or {}):
        for name, algorithm in settings.items():
            kind = _kind(name)
            chosen[kind] = _checked(kind, name, algorithm)
    return chosen


def _kind(name: str) -> Kind:
    operation = OPERATIONS.get(name)
    if operation is not None and operation.kind in ALGORITHMS:
        return operation.kind
    known = [kind.name.lower() for kind in ALGORITHMS]
    hint = did_you_mean(name, known) or f"these have one: {', '.join(known)}"
    raise UsageError(f"`{name}` is no collective that has an algorithm; {hint}")


def _checked(kind: Kind, name: str, algorithm: str) -> str:
    known = ALGORITHMS[kind]
    if algorithm in known:
        return algorithm
    hint = did_you_mean(algorithm, list(known)) or f"there is {', '.join(known)}"
    raise UsageError(f"{name}: `{algorithm}` is no algorithm that is known for it; {hint}")
