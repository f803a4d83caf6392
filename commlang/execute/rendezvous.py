"""How launchers meet: on one node there is nobody to meet, of several one serves the others."""

from __future__ import annotations

import contextlib
import time

from torch.distributed.elastic.rendezvous import (
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
    rendezvous_handler_registry,
)
from torch.distributed.elastic.rendezvous.static_tcp_rendezvous import (
    StaticTCPRendezvous,
    create_rdzv_handler,
)

from commlang.execute.stores import HashStore

LOCAL = "commlang-local"
STATIC = "commlang-static"
_PARTING_S = 2.0


class LocalRendezvous(RendezvousHandler):
    """A single agent's meeting with itself, in the form that elastic_launch wants.

    torch's own handlers both start a TCP store. That costs a port that another process may take, a
    thread before the fork, and host-name look-ups that stall for seconds with many ranks.
    """

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id

    def get_backend(self) -> str:
        return LOCAL

    def next_rendezvous(self) -> RendezvousInfo:
        # The ranks meet in a file, so the address is a filler for the variables that torch sets.
        return RendezvousInfo(HashStore(), 0, 1, RendezvousStoreInfo("127.0.0.1", 0))

    def is_closed(self) -> bool:
        return False

    def set_closed(self) -> None:
        pass

    def num_nodes_waiting(self) -> int:
        return 0

    def get_run_id(self) -> str:
        return self._run_id

    def shutdown(self) -> bool:
        return True

    @property
    def use_agent_store(self) -> bool:
        return False


class StaticRendezvous(StaticTCPRendezvous):
    """torch's rendezvous at a given address, whose host leaves last.

    torch's launchers all wait in a barrier at the end. The host, which serves it, may be gone
    before the others have heard that it is over, and then each warns of a lost connection.
    """

    def get_backend(self) -> str:
        return STATIC

    def shutdown(self) -> bool:
        deadline = time.monotonic() + _PARTING_S
        with contextlib.suppress(RuntimeError):  # a host that has failed
            if self._store is not None:
                parted = self._store.add("commlang/parted", 1)
                while self.rank == 0 and parted < self.world_size and time.monotonic() < deadline:
                    time.sleep(0.01)
                    parted = self._store.add("commlang/parted", 0)
        return super().shutdown()


def _local(params: RendezvousParameters) -> RendezvousHandler:
    return LocalRendezvous(params.run_id)


def _static(params: RendezvousParameters) -> RendezvousHandler:
    handler = create_rdzv_handler(params)
    assert isinstance(handler, StaticTCPRendezvous)
    return StaticRendezvous(
        handler.master_addr,
        handler.master_port,
        handler.rank,
        handler.world_size,
        handler.run_id,
        int(handler.timeout.total_seconds()),
    )


def register() -> None:
    """Make both known to torch, by `LOCAL` and `STATIC`."""
    rendezvous_handler_registry.register(LOCAL, _local)
    rendezvous_handler_registry.register(STATIC, _static)
