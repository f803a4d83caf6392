"""What is said of a calibration: where and when, and the figures."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from commlang.topology.quantities import told
from commlang.version import __version__

if TYPE_CHECKING:
    from commlang.calibrate.fit import Figures
    from commlang.calibrate.model import Samples


_TOLD = 0.01
"""The least part of a message's time that must come from its size."""


def facts(world: int, backend: str, torch: str, rounds: int) -> dict[str, str]:
    """What figures depend on, for the head of a file."""
    return {
        "calibrated": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, medians of {rounds}",
        "ranks": f"{world} on {backend}",
        "host": f"{platform.node()}, {os.cpu_count()} CPUs, {_processor()}, {platform.release()}",
        "versions": f"commlang {__version__}, torch {torch}, Python {platform.python_version()}",
    }


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").split("\n"):
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def doubts(samples: Samples, figures: Figures) -> list[str]:
    """Bandwidths of which the times tell nothing, since the largest message took no longer."""
    rates = {"one message": figures.bandwidth, "messages that move at one time": figures.channel}
    largest = float(samples.sizes[-1])
    return [
        f"warning: no bandwidth of {what} could be told: {largest:,.0f} bytes take as long as few; "
        "give larger --sizes, or more --iters"
        for what, rate in rates.items()
        if largest / rate < _TOLD * figures.alpha
    ]


def summary(samples: Samples, figures: Figures) -> str:
    """The figures in a few lines."""
    alpha, latency, overhead, gap = (
        told(x if x >= 1e-9 else 0.0, "s")
        for x in (figures.alpha, figures.latency, figures.overhead, figures.gap)
    )
    one, all_ = (told(x, "B/s") for x in (figures.bandwidth, figures.channel))
    lines = [
        f"{samples.world} ranks on {samples.backend}, {samples.cores} CPUs",
        f"  a message takes {alpha} (L {latency}, o {overhead} at each end), the next {gap} more",
        f"  bandwidth {one} of one message, {all_} of all that move at one time",
        f"  the fit is off by {figures.error:.0%} in the middle of ping-pong's sizes",
    ]
    if figures.memory:
        lines.append(f"  local work {told(figures.memory, 'B/s')} read and written, by each rank")
    return "\n".join(lines)
