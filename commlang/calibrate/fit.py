"""The figures of a machine: latency, overhead and bandwidth by LogGP, and whether ranks share it.

Ranks of one host hand messages on by copying, which takes the host's processors: where these are
fewer than the ranks, messages that move at the same time take as long as one after the other would,
also those of both directions. So two models are fitted, one channel that all share and one for each
direction of each pair, and the one that fits better is taken.

The fit is of logarithms, so that each size counts alike, with a loss that grows linearly for what
lies far off: times on few processors have several modes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.calibrate.model import ADD, ALONE, BOTH, CLONE, COPY, ISSUE, PAIRS
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
    """Alpha-beta of one message, and LogGP's parts of it; seconds, and bytes per second.

    `alpha` is L + 2 o. `shared` tells whether messages at one time share the bandwidth. `error` is
    the median relative error of the fit over all sizes of ping-pong. `memory` is bytes read and
    written per second and rank while all ranks do so.
    """

    alpha: float
    overhead: float
    bandwidth: float
    shared: bool
    error: float
    memory: float | None

    @property
    def latency(self) -> float:
        """LogGP's L in seconds."""
        return self.alpha - 2 * self.overhead


def fit(samples: Samples) -> Figures:
    """Fit the figures to what was measured."""
    loads, times = _ping_pong(samples)
    shared = _fitted(loads[0], samples.sizes, times)
    apart = _fitted(loads[1], samples.sizes, times)
    best = min(shared, apart, key=lambda found: found[0])
    _, alpha, bandwidth, error = best
    overhead = float(samples.seconds[ISSUE][0]) if ISSUE in samples.seconds else 0.0
    return Figures(
        alpha,
        min(overhead, alpha / 2),
        bandwidth,
        best is shared and samples.world > 1,
        error,
        _memory(samples),
    )


def _ping_pong(samples: Samples) -> tuple[Array, Array]:
    """Messages that share a channel, with one for all and with one each; and seconds of a message.

    Loads are (model, probe), times (probe, size).
    """
    pairs = samples.pairs
    known = {ALONE: (1, 1, 2), PAIRS: (pairs, 1, 2), BOTH: (2 * pairs, 1, 1)}
    probes = [probe for probe in known if probe in samples.seconds]
    loads = np.array([known[probe] for probe in probes], dtype=np.float64)
    times = np.array([samples.seconds[probe] / known[probe][2] for probe in probes])
    return loads[:, :2].T, times


def _fitted(loads: Array, sizes: Array, times: Array) -> tuple[float, float, float, float]:
    """The loss, alpha, bandwidth and median relative error of one model."""
    from scipy.optimize import least_squares

    volume = loads[:, None] * sizes[None]

    def off(logs: Array) -> Array:
        alpha, pace = np.exp(logs)
        return np.log((alpha + volume * pace) / times).ravel()

    start = np.log([times[:, 0].min(), times[-1, -1] / volume[-1, -1]])
    found = least_squares(off, start, loss="soft_l1", f_scale=0.1)
    alpha, pace = np.exp(found.x)
    error = float(np.median(np.abs(np.expm1(off(found.x)))))
    return float(found.cost), float(alpha), float(1 / pace), error


def _memory(samples: Samples) -> float | None:
    """Bytes read and written per second, in the middle over large copies and sums."""
    large = samples.sizes >= min(_LARGE, samples.sizes[-1])
    rates = [
        moved * samples.sizes[large] / samples.seconds[probe][large]
        for probe, moved in _READ_AND_WRITTEN.items()
        if probe in samples.seconds
    ]
    return float(np.median(np.concatenate(rates))) if rates else None


def clone_seconds(samples: Samples) -> Array:
    """Seconds per size of a copy into fresh memory, while all ranks do so."""
    return samples.seconds.get(CLONE, np.zeros(len(samples.sizes)))
