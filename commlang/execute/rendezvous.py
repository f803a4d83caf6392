"""A rendezvous for a run on one node: there is nobody to meet, so no server, port or look-up."""

from __future__ import annotations

from torch.distributed.elastic.rendezvous import (
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
    rendezvous_handler_registry,
)

from commlang.execute.stores import HashStore

NAME = "commlang-local"


class LocalRendezvous(RendezvousHandler):
    """A single agent's meeting with itself, in the form that elastic_launch wants.

    torch's own handlers both start a TCP store. That costs a port that another process may take, a
    thread before the fork, and host-name look-ups that stall for seconds with many ranks.
    """

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id

    def get_backend(self) -> str:
        return NAME

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


def _create(params: RendezvousParameters) -> RendezvousHandler:
    return LocalRendezvous(params.run_id)


def register() -> str:
    """Make the rendezvous known to torch, and return its name."""
    rendezvous_handler_registry.register(NAME, _create)
    return NAME
