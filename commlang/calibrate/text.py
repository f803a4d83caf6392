"""The file of a calibrated machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlang.topology import Machine


def text_of(machine: Machine, facts: Mapping[str, str]) -> str:
    """YAML that `load_machine` reads, with what it was measured on as comments above it."""
    import yaml

    head = [f"# {name}: {_line(value)}" for name, value in facts.items()]
    body = yaml.safe_dump(
        _plain(machine), sort_keys=False, default_flow_style=None, allow_unicode=True, width=1000
    )
    return "\n".join([*head, "", body])


def _line(value: str) -> str:
    """A value without what would end a comment."""
    return " ".join(value.split())


def _plain(machine: Machine) -> dict[str, Any]:
    """The machine with its figures as people write them."""
    compute: dict[str, Any] = {"source": machine.compute.source}
    if machine.compute.memory_bandwidth:
        compute = {"memory_bandwidth": _rate(machine.compute.memory_bandwidth), **compute}
    return {
        "name": machine.name,
        "links": [
            {
                "name": link.name,
                "latency": _time(link.latency),
                "bandwidth": _rate(link.bandwidth),
                "overhead": _time(link.overhead),
                "gap": _time(link.gap),
                "source": link.source,
            }
            for link in machine.links
        ],
        "levels": [
            {
                "name": level.name,
                "kind": level.kind,
                "link": level.link,
                "size": level.count,
                **({"channel": _rate(level.channel)} if level.channel else {}),
            }
            for level in machine.levels
        ],
        "compute": compute,
        "collectives": [
            {
                "name": one.name,
                "world": one.world,
                **(
                    {"points": [[f"{size:.0f}B", _time(seconds)] for size, seconds in one.points]}
                    if one.points
                    else {"alpha": _time(one.alpha or 0.0), "beta": 0}
                ),
                "source": one.source,
            }
            for one in machine.collectives
        ],
    }


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.4g}us"


def _rate(rate: float) -> str:
    return f"{rate / 1e9:.4g}GB/s"
