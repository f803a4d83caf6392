"""Ports for tests that run at the same time as others."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from itertools import count

# Each worker of pytest-xdist has ports of its own, all below those that the system gives to
# outgoing connections, so that nobody takes one between its choice here and its use. Of two runs
# of pytest at once, each starts elsewhere.
_EACH = 600
_FIRST = 20_000 + _EACH * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 20)
_turn = count(os.getpid())


def free_port(ports: int = 1) -> int:
    """A port of this machine that is free, as are the next ones if more `ports` are asked for."""
    while True:
        port = _FIRST + next(_turn) * ports % (_EACH - ports)
        with ExitStack() as stack:
            try:
                for number in range(port, port + ports):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", number))
            except OSError:
                continue
            return port
