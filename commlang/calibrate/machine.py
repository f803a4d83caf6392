"""The description of a machine from its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.calibrate.collectives import Predicted, group_sizes
from commlang.calibrate.model import ALL_REDUCE
from commlang.topology import Collective, Compute, Level, Link, Machine

if TYPE_CHECKING:
    from commlang.calibrate.fit import Figures
    from commlang.calibrate.model import Samples
    from commlang.program.columns import Array

_FROM_BOTH = "from ping-pong and all_reduce, by the algorithm of the backend"


def machine_of(name: str, samples: Samples, figures: Figures) -> Machine:
    """As many devices as there were ranks, on a bus, and times of collectives."""
    link = Link(
        name=samples.backend,
        latency=figures.latency,
        bandwidth=figures.bandwidth,
        overhead=figures.overhead,
        gap=figures.gap,
        source=f"ping-pong of pairs at once; the fit is off by {figures.error:.0%} in the middle",
    )
    host = Level(
        name="host", kind="bus", link=link.name, size=(samples.world,), channel=figures.channel
    )
    memory = "copy and accumulate by all ranks at once, bytes read and written"
    return Machine(
        name=name,
        links=(link,),
        levels=(host,),
        compute=Compute(memory_bandwidth=figures.memory, source=memory),
        collectives=_collectives(samples, figures),
    )


def _collectives(samples: Samples, figures: Figures) -> tuple[Collective, ...]:
    predicted = Predicted(samples, figures)
    return tuple(
        _collective(collective, ranks, samples, predicted.seconds(collective, ranks))
        for ranks in group_sizes(samples.world)
        for collective in predicted.names()
    )


def _collective(name: str, ranks: int, samples: Samples, seconds: Array) -> Collective:
    measured = name == ALL_REDUCE and ranks == samples.world
    if name == "barrier":
        alpha = float(seconds[0])
        return Collective(name=name, world=ranks, alpha=alpha, beta=0.0, source=_FROM_BOTH)
    points = zip(samples.sizes.tolist(), seconds.tolist(), strict=True)
    source = "measured" if measured else _FROM_BOTH
    return Collective(name=name, world=ranks, points=tuple(points), source=source)
