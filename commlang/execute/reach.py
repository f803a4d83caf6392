"""Whether the place where ranks meet can be reached, told before torch tries.

Torch waits for the same things in native code: it writes pages to standard error, does not tell an
unknown host name from a port that nobody serves, and waits without end for a server that takes the
connection and then says nothing.
"""

from __future__ import annotations

import socket
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from commlang.errors import CommlangError
from commlang.execute.report import first_line
from commlang.execute.stores import TCPStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.execute.environment import RankInfo
    from commlang.execute.stores import Store

T = TypeVar("T")
_PAUSE_S = 0.05
_LONGEST_S = 1.0
_SLACK_S = 1.0


class Unreachable(CommlangError):
    """Nobody answers at the place where the ranks meet; the message is a clause that says why."""


def resolve(host: str, port: int, deadline: float) -> None:
    """Return once the host name has an address; raises Unreachable at `deadline` (monotonic).

    Not at once, since names of a cluster may be known only after its hosts have started.
    """
    _retried(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), deadline, host)


def connect(host: str, port: int, deadline: float) -> None:
    """Return once somebody listens there; raises Unreachable at `deadline` (monotonic)."""

    def attempt() -> None:
        left = max(deadline - time.monotonic(), _PAUSE_S)
        socket.create_connection((host, port), timeout=left).close()

    _retried(attempt, deadline, host)


def within(seconds: float, work: Callable[[], T], said: str) -> T:
    """What `work` returns or raises; raises Unreachable, which `said` why, if it lasts longer.

    It is left behind in its thread then: native code cannot be broken off.
    """
    found: list[T] = []
    errors: list[BaseException] = []

    def attempt() -> None:
        try:
            found.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=attempt, name="commlang-store", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not found:
        raise Unreachable(said)
    return found[0]


def serve_store(info: RankInfo, host: str, port: int, timeout: float) -> Store:
    """The store, which this rank serves to all; raises CommlangError as `join_store` does."""
    where = f"rank {info.rank} cannot serve the store at {host}:{port}"
    try:
        resolve(host, port, time.monotonic() + timeout)
        said = "it gets no answer from itself there"
        return within(timeout, lambda: _store(info, host, port, timeout, serve=True), said)
    except (Unreachable, RuntimeError, OSError) as error:
        if is_taken(error):
            raise CommlangError(
                f"{where}: another process has taken the port. Choose another MASTER_PORT "
                "(--master-port), the same for all ranks."
            ) from error
        raise CommlangError(
            f"{where} ({first_line(error)}). MASTER_ADDR has to be an address of the machine "
            "that this rank runs on, by which all others reach it."
        ) from error


def join_store(info: RankInfo, host: str, port: int, timeout: float) -> Store:
    """The store that rank 0 or its launcher serves.

    Raises CommlangError, with what is wrong, if that cannot be had within `timeout` seconds.
    """
    deadline = time.monotonic() + timeout
    try:
        connect(host, port, deadline)
        left = max(deadline - time.monotonic(), _SLACK_S)
        said = "what listens there gives no answer"
        return within(left, lambda: _store(info, host, port, left, serve=False), said)
    except (Unreachable, RuntimeError, OSError) as error:
        raise CommlangError(
            f"rank {info.rank} got no answer within {timeout:.0f} s from rank 0 at {host}:{port} "
            f"({first_line(error)}). Check that rank 0 runs there, and that all ranks have the "
            "same MASTER_ADDR and MASTER_PORT."
        ) from error


def is_taken(error: BaseException) -> bool:
    """Whether a server could not start because another process listens on its port."""
    return "EADDRINUSE" in str(error)


def _store(info: RankInfo, host: str, port: int, timeout: float, *, serve: bool) -> Store:
    return TCPStore(
        host,
        port,
        info.world_size,
        serve,
        timedelta(seconds=timeout),
        wait_for_workers=False,
        multi_tenant=True,
    )


def _retried(attempt: Callable[[], object], deadline: float, host: str) -> None:
    pause = _PAUSE_S
    while True:
        try:
            attempt()
            return
        except socket.gaierror as error:
            said = f"there is no host {host!r}: {error.strerror or error}"
        except OSError as error:
            said = f"{error.strerror or error}"
        except UnicodeError:
            raise Unreachable(f"{host!r} is no host name") from None
        if time.monotonic() + pause > deadline:
            raise Unreachable(said)
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_S)
