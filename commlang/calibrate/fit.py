"""The figures of a machine: latency, overhead and bandwidth by LogGP, and what messages share.

Ranks of one host hand messages on by copying, which takes the host's processors: each message takes
them for a while however small it is, which is LogGP's g, and where they are few, messages that move
at the same time hinder one another, also those of both directions. So there are two bandwidths: B
of one message, and C of the channel that all pass. Of k messages of S bytes that start together the
last is there after alpha + S / B + (k - 1) (g + S / C).

The fit is of logarithms, so that each size counts alike, with a loss that grows linearly for what
lies far off: times on few processors have several modes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from commlang.calibrate.model import ADD, ALONE, BOTH, CARS, COPY, ISSUE, PAIRS, TRAIN, TRIPS
from commlang.records import record

if TYPE_CHECKING:
    from commlang.calibrate.model import Samples
    from commlang.program.columns import Array

_LARGE = 64 << 10
"""Bytes from which local work is a matter of bandwidth."""
_READ_AND_WRITTEN = {COPY: 2, ADD: 3}
"""Bytes that the memory moves for each of an operand."""


@record
class Figures:
    """Of messages and of local work; seconds, and bytes per second.

    `alpha` is L + 2 o, `gap` the time from one message of the channel to the next, `bandwidth` that
    of one message and `channel` that of all together. `error` is the median relative error of the
    fit over all sizes of ping-pong. `memory` is bytes read and written per second and rank while
    all ranks do so.
    """

    alpha: float
    overhead: float
    gap: float
    bandwidth: float
    channel: float
    error: float
    memory: float | None

    @property
    def latency(self) -> float:
        """LogGP's L in seconds."""
        return self.alpha - 2 * self.overhead

    def seconds(self, messages: Array | float, steps: Array | float, size: Any) -> Any:
        """Of so many messages of `size` bytes, in so many steps that follow one another."""
        behind = messages - steps
        least = steps * self.alpha + behind * self.gap
        return least + size * (steps / self.bandwidth + behind / self.channel)


def fit(samples: Samples) -> Figures:
    """Fit the figures to what was measured."""
    from scipy.optimize import least_squares

    at_once, times = ping_pong(samples)

    def figures(logs: Array) -> Figures:
        alpha, gap, pace, shared = np.exp(logs).tolist()
        overhead = float(samples.seconds[ISSUE][0]) if ISSUE in samples.seconds else 0.0
        return Figures(alpha, min(overhead, alpha / 2), gap, 1 / pace, 1 / shared, 0.0, None)

    def off(logs: Array) -> Array:
        return np.log(figures(logs).seconds(at_once[:, None], 1, samples.sizes) / times).ravel()

    least, pace = times[:, 0].min(), times[:, -1].min() / samples.sizes[-1]
    start = np.log([least, least / 2, pace, pace / 2])
    found = least_squares(off, start, loss="soft_l1", f_scale=0.1, bounds=(-32, 5))
    error = float(np.median(np.abs(np.expm1(off(found.x)))))
    return replace(figures(found.x), error=error, memory=_memory(samples))


def ping_pong(samples: Samples) -> tuple[Array, Array]:
    """Per probe how many messages move at once, and per probe and size the seconds of them."""
    pairs = samples.pairs
    known = {
        ALONE: (1, 2 * TRIPS),
        PAIRS: (pairs, 2 * TRIPS),
        BOTH: (2 * pairs, 1),
        TRAIN: (2 * pairs * CARS, 1),
    }
    probes = [probe for probe in known if probe in samples.seconds]
    at_once = np.array([known[probe][0] for probe in probes], dtype=np.float64)
    return at_once, np.array([samples.seconds[probe] / known[probe][1] for probe in probes])


def _memory(samples: Samples) -> float | None:
    """Bytes read and written per second, in the middle over large copies and sums."""
    large = samples.sizes >= min(_LARGE, samples.sizes[-1])
    rates = [
        moved * samples.sizes[large] / samples.seconds[probe][large]
        for probe, moved in _READ_AND_WRITTEN.items()
        if probe in samples.seconds
    ]
    return float(np.median(np.concatenate(rates))) if rates else None


def copy_seconds(samples: Samples) -> Array:
    """Seconds per size of a copy in memory, while all ranks do so."""
    return samples.seconds.get(COPY, np.zeros(len(samples.sizes)))
