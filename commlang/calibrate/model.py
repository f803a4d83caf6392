"""What was measured, as the fit takes it."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from commlang.errors import UsageError
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commlang.program.columns import Array

ALONE, PAIRS, BOTH, TRAIN = "alone", "pairs", "both ways", "trains"
"""Ping-pong of ranks 0 and 1; of all pairs at once; and that with both directions at once, of one
message and of a train of them.
"""
CARS = 4
"""Messages of a train."""
TRIPS = 2
"""How often ping-pong one way goes there and back, as ranks do not leave a barrier together."""
ALL_REDUCE, COPY, ADD = "all_reduce", "copy", "accumulate"
ISSUE = "issue"
"""The host's time for the isend of a ping-pong both ways."""


@record
class Samples:
    """Medians over rounds, of the slowest rank: `seconds[probe][i]` at `sizes[i]` bytes.

    Ping-pong one way is there and back, two messages. `cores` is how many processors the ranks of
    the host share.
    """

    world: int
    cores: int
    backend: str
    sizes: Array
    seconds: dict[str, Array]

    @classmethod
    def of(
        cls,
        world: int,
        cores: int,
        backend: str,
        measured: Mapping[tuple[str, int], Sequence[float]],
    ) -> Samples:
        """The medians of rounds by (probe, bytes); raises UsageError for fewer than two sizes."""
        sizes = sorted({size for _, size in measured})
        if len(sizes) < 2:
            raise UsageError("one size gives no bandwidth; write two or more, as --sizes 1Ki..1Mi")
        probes = dict.fromkeys(probe for probe, _ in measured)
        return cls(
            world,
            cores,
            backend,
            np.array(sizes, dtype=np.float64),
            {p: np.array([median(measured[p, s]) for s in sizes]) for p in probes},
        )

    @property
    def pairs(self) -> int:
        """How many pairs play ping-pong at once."""
        return self.world // 2
