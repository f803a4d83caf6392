"""Networks of ASTRA-sim's analytical back end, read as machines.

Format: https://github.com/astra-sim/astra-network-analytical, `NetworkParser.cpp`; one entry per
dimension, the first dimension being that of neighbouring devices. There `GB` are 2^30 bytes
(`NetworkFunction.cpp`), and a message through a `Switch` pays the latency twice (`Switch.cpp`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from commlang.topology.model import Machine
from commlang.topology.validate import validated

if TYPE_CHECKING:
    from commlang.topology.marked import Marked

_GB = float(1 << 30)
_SOURCE = "ASTRA-sim's network file"
_KINDS = {"Ring": "ring", "FullyConnected": "full", "Switch": "switch"}

Block = Literal["Ring", "FullyConnected", "Switch"]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Network(BaseModel):
    """One file: GB/s of each link and direction, nanoseconds of each link."""

    # Other back ends of ASTRA-sim read further keys of the same file.
    model_config = ConfigDict(frozen=True, extra="ignore")

    topology: Annotated[tuple[Block, ...], Field(min_length=1, max_length=10)]
    npus_count: tuple[Annotated[int, Field(ge=2, le=1 << 24)], ...]
    bandwidth: tuple[Positive, ...]
    latency: tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...]

    @model_validator(mode="after")
    def _one_each(self) -> Self:
        for name in ("npus_count", "bandwidth", "latency"):
            count = len(getattr(self, name))
            if count != len(self.topology):
                raise ValueError(
                    f"`{name}` has {count} entries and `topology` {len(self.topology)}; "
                    "each has one per dimension"
                )
        return self


def read_astra(marked: Marked) -> Machine:
    """The machine of a network file; raises UsageError, with its place, for what is none.

    Each device has a link of its own in each dimension. A message to a device that differs in
    several goes through one after the other, the first first, which the back end that knows no
    congestion does not count.
    """
    network = validated(marked, Network)
    links: list[dict[str, object]] = []
    levels: list[dict[str, object]] = []
    inside = 1
    for at, block in enumerate(network.topology):
        name, size = f"dimension {at}", network.npus_count[at]
        links.append(
            {
                "name": name,
                "latency": (2 if block == "Switch" else 1) * network.latency[at] * 1e-9,
                "bandwidth": network.bandwidth[at] * _GB,
                "source": _SOURCE,
            }
        )
        kind = "rails" if block == "Switch" and inside > 1 else _KINDS[block]
        levels.append({"name": name, "kind": kind, "link": name, "size": size, "ports": inside})
        inside *= size
    name = Path(marked.path).stem[:100] or "astra-sim"
    about = f"Read from {_SOURCE}"
    data = {"name": name, "about": about, "links": links, "levels": levels}
    return validated(marked.of(data), Machine)
