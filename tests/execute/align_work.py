"""Ranks whose clocks are not one, for the tests of their alignment."""

from __future__ import annotations

import time
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from commlang.execute.align import Alignment

if TYPE_CHECKING:
    from pathlib import Path

HOSTS = ("a", "b", "b")
AHEAD = {"a": 100.0, "b": 350.5}
"""Seconds that each host's clock is ahead of the true one."""


def clocks(rank: int, size: int, path: Path) -> Any:
    """What three ranks on two hosts, each with a clock of its own, find out of them."""
    store = f"file://{path}/store"
    dist.init_process_group(
        "gloo", init_method=store, rank=rank, world_size=size, timeout=timedelta(seconds=90)
    )
    world: Any = SimpleNamespace(rank=rank, world_size=size, device=torch.device("cpu"))
    host = HOSTS[rank]
    alone = Alignment(world, "one host")
    alone.look()
    found = Alignment(world, host, lambda: time.perf_counter() + AHEAD[host])
    found.look()
    found.look()
    dist.destroy_process_group()
    return alone.clock(), found.clock()
