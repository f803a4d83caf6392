"""Small programs, and machines whose times are whole numbers."""

from __future__ import annotations

from typing import Any

from commlang.program import Program, build
from commlang.resolve.modules import load_module
from commlang.simulate import Simulation, simulate
from commlang.source import Source
from commlang.topology import Compute, Level, Link, Machine


def program_of(text: str, world: int, **values: Any) -> Program:
    """The program of a text's pattern `main`."""
    return build(load_module(Source(text, "case.cl")).symbols["main"], world, values)


def switch(
    size: int = 64, *, o: float = 1500, latency: float = 2500, g: float = 1000, per_byte: float = 6
) -> Machine:
    """Devices around one switch; the defaults are LogGOPSim's, whose unit is a nanosecond."""
    link = Link(name="wire", latency=latency, bandwidth=1 / per_byte, overhead=o, gap=g)
    level = Level(name="node", kind="switch", link="wire", size=(size,))
    compute = Compute(flops={"float32": 100.0}, memory_bandwidth=0.5)
    return Machine(name="plain", links=(link,), levels=(level,), compute=compute)


def nodes(count: int, each: int, *, ports: int = 1) -> Machine:
    """Nodes of `each` devices behind so many ports, with wires ten times as slow between them."""
    links = (
        Link(name="inside", latency=10, bandwidth=1, overhead=1),
        Link(name="between", latency=100, bandwidth=0.1, overhead=1),
    )
    levels = (
        Level(name="node", kind="switch", link="inside", size=(each,)),
        Level(name="cluster", kind="switch", link="between", size=(count,), ports=ports),
    )
    return Machine(name="nodes", links=links, levels=levels)


def times(text: str, world: int, machine: Machine | None = None, **options: Any) -> Simulation:
    """The simulation of a text's pattern `main`."""
    return simulate(program_of(text, world), machine or switch(), **options)


def ends(simulation: Simulation) -> list[float]:
    """When each rank's last event ends."""
    rank, end = simulation.program.rank, simulation.timing.end
    return [float(end[rank == r].max()) for r in range(simulation.program.world)]
