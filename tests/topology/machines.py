"""Small machines for tests, written as YAML would be read."""

from __future__ import annotations

from typing import Any

from commlang.topology import Machine

LINKS = [
    {"name": "near", "latency": "1us", "bandwidth": "100GB/s"},
    {"name": "far", "latency": "5us", "bandwidth": "10GB/s"},
]


def machine(*levels: dict[str, Any], **more: Any) -> Machine:
    """A machine of the levels given, each named `l0`, `l1` …; the first by `near`, else `far`."""
    named = [
        {"name": f"l{at}", "link": "far" if at else "near", **level}
        for at, level in enumerate(levels)
    ]
    return Machine.model_validate({"name": "test", "links": LINKS, "levels": named, **more})


def named_route(of: Machine, src: int, dst: int) -> list[str]:
    """The names of the channels between two devices."""
    routes = of.routes([src], [dst])  # pyright: ignore[reportArgumentType]
    return [of.resources[at].name for at in routes.resource]
