"""The store in which torch's ranks meet, at a place that MPI has told them."""

from __future__ import annotations

import socket
from datetime import timedelta
from typing import TYPE_CHECKING

from mpi4py import MPI

from commlang.execute.mpi.library import world, world_of
from commlang.execute.stores import Store, TCPStore

if TYPE_CHECKING:
    from commlang.execute.environment import RankInfo

_TIMEOUT = timedelta(minutes=5)


def open_store(timeout: timedelta = _TIMEOUT) -> Store:
    """A store that rank 0 serves, on a port that was free; all ranks call this."""
    everyone = world()
    node = everyone.Split_type(MPI.COMM_TYPE_SHARED)
    alone = everyone.allreduce(node.size == everyone.size, MPI.LAND)
    node.Free()
    host = "127.0.0.1" if alone else socket.gethostname()
    if everyone.rank == 0:
        store = _connect(host, 0, timeout, serve=True)
        everyone.bcast((host, store.port))
        return store
    host, port = everyone.bcast(None)
    return _connect(host, port, timeout, serve=False)


def open_store_of(info: RankInfo, timeout: float) -> Store:
    """`open_store` for a rank whose launcher has told its place; raises UsageError if MPI differs.

    `timeout` is in seconds.
    """
    world_of(info.rank, info.world_size)
    return open_store(timedelta(seconds=timeout))


def _connect(host: str, port: int, timeout: timedelta, *, serve: bool) -> TCPStore:
    size = world().size
    return TCPStore(host, port, size, serve, timeout, wait_for_workers=False)
