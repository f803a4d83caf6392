"""How local ranks are started, in torchrun's words."""

from __future__ import annotations

import os
import socket
import sys
import threading
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from commlang.errors import UsageError
from commlang.records import record

StartMethod = Literal["auto", "fork", "spawn"]

TORCHRUN_PORT = 29500


@record
class LaunchOptions:
    """torchrun's options for one node of a run, under torchrun's names.

    `rdzv_backend` is `static` or `c10d`; "" is static, or c10d if there is an `rdzv_endpoint`. A
    run on one node needs neither, unless one is asked for.
    """

    nproc_per_node: int = 4
    nnodes: int | str = 1
    node_rank: int = 0
    rdzv_backend: str = ""
    rdzv_endpoint: str = ""
    rdzv_id: str = "commlang"
    rdzv_conf: dict[str, Any] = field(default_factory=dict[str, Any])
    master_addr: str = "127.0.0.1"
    master_port: int = TORCHRUN_PORT
    standalone: bool = False
    start_method: StartMethod = "auto"
    local_addr: str | None = None

    @property
    def nodes(self) -> int:
        """The number of nodes; raises UsageError if it is none, or an elastic range."""
        text = str(self.nnodes)
        least, colon, most = text.partition(":")
        if colon and least != most:
            raise UsageError(
                f"--nnodes {text}: a pattern is proven for one world, so its ranks cannot come and "
                "go; write one number of nodes"
            )
        return _positive("--nnodes", least)

    @property
    def is_local(self) -> bool:
        """Whether all ranks are here and may meet without a server."""
        asked = self.rdzv_backend or self.rdzv_endpoint
        return self.nodes == 1 and (self.standalone or not asked)

    def checked(self) -> LaunchOptions:
        """These options; raises UsageError if they make no sense."""
        nodes = self.nodes
        _positive("--nproc-per-node", str(self.nproc_per_node))
        if not 0 <= self.node_rank < nodes:
            raise UsageError(f"--node-rank {self.node_rank}: must be from 0 to {nodes - 1}")
        if self.standalone and nodes > 1:
            raise UsageError(f"--standalone is for one node, but --nnodes is {nodes}")
        if self.rdzv_backend not in ("", "static", "c10d"):
            raise UsageError(f"--rdzv-backend {self.rdzv_backend}: write static or c10d")
        if self.start_method not in ("auto", "fork", "spawn"):
            raise UsageError(f"--start-method {self.start_method}: write auto, fork or spawn")
        return self

    def rendezvous(self) -> tuple[str, str, dict[str, Any]]:
        """Backend, endpoint and configuration for elastic_launch, as torchrun would choose them."""
        backend = self.rdzv_backend or ("c10d" if self.rdzv_endpoint else "static")
        endpoint = self.rdzv_endpoint or f"{self.master_addr}:{self.master_port}"
        place = {"rank": self.node_rank} if backend == "static" else {}
        return backend, endpoint, {**place, **self.rdzv_conf}


def native_threads() -> int | None:
    """The number of threads of this process, native ones too; None where /proc does not say."""
    tasks = Path("/proc/self/task")
    return sum(1 for _ in tasks.iterdir()) if tasks.exists() else None


def choose_start_method(
    asked: StartMethod, *, cuda: bool, local: bool = True
) -> Literal["fork", "spawn"]:
    """`asked`, or for `auto` fork where that is safe, else spawn. Call it before importing torch.

    Fork copies one thread only. So it is safe on Linux, without devices, if there is no other
    Python thread, and none of torch's own: it has none until it is imported, and keeps to one with
    OMP_NUM_THREADS=1. (numpy's OpenBLAS may have started some; it restarts them after a fork.)
    Launchers of several nodes (not `local`) meet in a store, whose thread looks up the names of
    those that connect: a rank that is forked meanwhile finds the C library's resolver locked for
    ever, and hangs as it joins.
    """
    if asked != "auto":
        return asked
    torch_is_quiet = "torch" not in sys.modules or native_threads() == 1
    alone = threading.active_count() == 1
    quiet = local and alone and torch_is_quiet
    safe = sys.platform == "linux" and hasattr(os, "fork") and not cuda and quiet
    return "fork" if safe else "spawn"


def prefer_loopback() -> None:
    """Let gloo use the loopback device, unless told otherwise: it spares host-name look-ups."""
    names = {name for _, name in socket.if_nameindex()}
    loopback = next((name for name in ("lo", "lo0") if name in names), None)
    if loopback:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback)


def _positive(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise UsageError(f"{name} {text}: must be a number from 1 up")
    return int(text)
