"""A rank from start to end, whoever started it: its watchdog, its group, its result."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from commlang.execute import world
from commlang.execute.bulletin import Bulletin
from commlang.execute.options import prefer_loopback
from commlang.execute.progress import BOARD_FILE, JOINED, JOINING, MEETING, Board
from commlang.execute.settings import MPI
from commlang.execute.stores import own_connection
from commlang.execute.watch import Launched, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from datetime import timedelta

    from commlang.execute.diagnosis import Narrator
    from commlang.execute.environment import RankInfo
    from commlang.execute.stores import Store
    from commlang.execute.world import World

STORE_FILE = "store"


class RankContext:
    """What the work of a rank gets: where it is, how to join the others, and its watchdog."""

    def __init__(
        self, info: RankInfo, watch: Watch, timeout: float, launched: Launched | None = None
    ) -> None:
        self.info = info
        self._watch = watch
        self._timeout = timeout
        self._launched = launched
        # Rank 0's may be the one that serves all others, and is asked after the group is gone.
        self._store: Store | None = None

    @property
    def position(self) -> memoryview:
        """`position[0] = k` before the k-th step; take it after `join`.

        Any change of it is progress, and none within the timeout ends the run. So over repetitions
        k goes on counting, and long local work after the last step has to count on as well.
        """
        return self._watch.position

    def follow(self, narrator: Narrator) -> None:
        """Say what positions mean, for the diagnosis and to know whom this rank waits for."""
        self._watch.follow(narrator)

    @contextlib.contextmanager
    def join(
        self, *, backend: str = "auto", device: str = "auto", timeout: timedelta = world.NEVER
    ) -> Generator[World]:
        """`world.join`, by the way that this run's ranks meet; an exception ends the process."""
        try:
            # Before the ranks wait for one another, so that a fault that all share is told at once.
            place = world.choose_device(device, self.info.local_rank)
            name = world.choose_backend(backend, place)
            store = self._store = self._meet(name)
            self.position[0] = JOINING
            with world.join(
                self.info, store=store, backend=backend, device=device, timeout=timeout
            ) as joined:
                self.position[0] = JOINED
                try:
                    yield joined
                except BaseException as error:
                    # Before the group is destroyed, which would show the others a lost connection.
                    self._watch.fail(error)
        except BaseException as error:
            self._watch.fail(error)

    def _meet(self, backend: str) -> Store:
        info = self.info
        if self._launched and not info.spans_nodes:
            return world.open_store(
                info, self._timeout, f"file://{self._launched.run_dir}/{STORE_FILE}"
            )
        if not info.spans_nodes:
            prefer_loopback()
        init_method = "mpi://" if backend == MPI else "env://"
        self.position[0] = MEETING
        store = world.open_store(info, self._timeout, init_method)
        bulletin = Bulletin(own_connection(store), info.rank, info.world_size)
        bulletin.check_in(self._watch.report(), self._timeout)
        if not self._launched:
            board, row = _shared_board(store, info)
            self._watch.connect(board, row, bulletin)
        else:
            self._watch.connect_bulletin(bulletin)
        return store


def run_rank(
    entry: Callable[..., Any],
    args: tuple[Any, ...],
    info: RankInfo,
    *,
    timeout: float = 60.0,
) -> Any:
    """Run `entry(context, *args)` in this process, which torchrun, srun or mpirun made a rank.

    Returns what `entry` returns. If the run fails anywhere, the process ends with an exit code that
    is not 0, and the lowest rank that is left prints the diagnosis. `timeout` is in seconds without
    progress.
    """
    watch = Watch(info.rank, Board.private(info.rank), 0, timeout)
    return _watched(entry, args, RankContext(info, watch, timeout), watch)


def run_launched(
    entry: Callable[..., Any],
    args: tuple[Any, ...],
    info: RankInfo,
    launched: Launched,
    timeout: float,
) -> Any:
    """`run_rank` for a process that `launch` started; its launcher tells of failures."""
    board = Board.open(launched.run_dir / BOARD_FILE)
    watch = Watch(info.rank, board, info.local_rank, timeout, launched)
    return _watched(entry, args, RankContext(info, watch, timeout, launched), watch)


def _watched(
    entry: Callable[..., Any], args: tuple[Any, ...], context: RankContext, watch: Watch
) -> Any:
    _few_threads()
    watch.start()
    try:
        result = entry(context, *args)
        watch.done()
    except BaseException as error:
        watch.fail(error)
    sys.stdout.flush()
    watch.close()
    return result


def _few_threads() -> None:
    """One OpenMP thread a rank unless OMP_NUM_THREADS says otherwise, as torchrun does."""
    asked = os.environ.setdefault("OMP_NUM_THREADS", "1")
    if asked.isdecimal():
        # torch read the variable when it was imported, which was perhaps before it was set.
        torch.set_num_threads(int(asked))


def _shared_board(store: Store, info: RankInfo) -> tuple[Board, int]:
    """A board for the ranks of this node, in a file that is gone again once all have opened it."""
    local = info.local_world_size
    if not local or local == 1:
        return Board.private(info.rank), 0
    node = f"commlang/board/{socket.gethostname()}/{info.node}"
    store.set(f"{node}/rank/{info.local_rank}", str(info.rank))
    if info.local_rank == 0:
        ranks = [int(store.get(f"{node}/rank/{index}")) for index in range(local)]
        path = Path(tempfile.gettempdir()) / f"commlang-board-{uuid.uuid4().hex}"
        try:
            board = Board.create(path, ranks)
            store.set(f"{node}/path", str(path))
            _all_opened(store, node, local)
        finally:
            path.unlink(missing_ok=True)
        return board, 0
    path = Path(store.get(f"{node}/path").decode())
    try:
        shared = Board.open(path), info.local_rank
    except OSError:
        # Ranks in containers may see different files; the bulletin tells them enough.
        shared = Board.private(info.rank), 0
    _all_opened(store, node, local)
    return shared


def _all_opened(store: Store, node: str, local: int) -> None:
    if store.add(f"{node}/opened", 1) == local:
        store.set(f"{node}/all-opened", "")
    store.wait([f"{node}/all-opened"])
