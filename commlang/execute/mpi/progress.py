"""A thread that lets MPI go on while its rank does something else.

MPI moves data only inside of its calls. A rank that waits outside of MPI, at a store or in a long
computation, would hold up those that wait for its messages; and a future of torch has to be
completed although nobody asks for it.
"""

from __future__ import annotations

import atexit
import threading
from typing import TYPE_CHECKING

from mpi4py import MPI

if TYPE_CHECKING:
    from commlang.execute.mpi.work import MpiWork

# Without futures to complete this only has to be often enough for the rare case that needs it.
_IDLE_S = 0.01
_FIRST_S, _LONGEST_S = 2e-5, 1e-3


class Progress:
    """The thread of this process; it ends with the interpreter, before MPI does."""

    def __init__(self) -> None:
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._works: list[MpiWork] = []
        self._thread = threading.Thread(target=self._run, name="commlang-mpi", daemon=True)
        self._ending = False
        self._thread.start()
        atexit.register(self._end)

    def complete(self, work: MpiWork) -> None:
        """Take over a work: nobody else may wait for its request or test it from now on."""
        with self._lock:
            self._works.append(work)
        self._wake.set()

    def _run(self) -> None:
        pause = _FIRST_S
        while not self._ending:
            with self._lock:
                works = self._works
                self._works = []
            if works:
                left = [work for work in works if not work.settle()]
                pause = _FIRST_S if len(left) < len(works) else min(2 * pause, _LONGEST_S)
                with self._lock:
                    self._works = left + self._works
            else:
                pause = _FIRST_S
                MPI.COMM_SELF.Iprobe()
            self._wake.wait(pause if works else _IDLE_S)
            self._wake.clear()

    def _end(self) -> None:
        self._ending = True
        self._wake.set()
        self._thread.join()
