"""Real gloo ranks, started once and used for many scripts; those that hang are replaced.

Whether ranks hang is not told by a clock, which a busy machine would make a liar of: they hang once
every thread of every rank that has not answered sleeps, and none has been woken for a while.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import tempfile
import time
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch

from tests.differential.ranks import serve

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from tests.differential.script import Script

STILL_S = 0.3
"""So long nothing may have moved before ranks count as hanging."""
_LOOK_S = 0.05
_SPINNING_S = 5.0
_LOOP = "gloo_tcp_loop"
_LIMIT_S = 300.0
"""A run that still moves after so long is no pattern of ours; raises RuntimeError."""


@contextlib.contextmanager
def pools() -> Generator[Callable[[int], RankPool]]:
    """A pool for each world that is asked for, started when it is first."""
    with contextlib.ExitStack() as stack:
        known: dict[int, RankPool] = {}

        def pool_of(world: int) -> RankPool:
            if world not in known:
                known[world] = stack.enter_context(RankPool(world))
            return known[world]

        yield pool_of


class End(StrEnum):
    """How a run ended."""

    ENDED = "ended"
    HUNG = "hung"
    FAILED = "failed"
    """An operation raised, or a rank's process died."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run left: the tensors of each rank, and what its externs were called with."""

    end: End
    tensors: list[dict[str, bytes]]
    seen: list[list[Any]]
    why: str = ""

    def tensor(self, rank: int, name: str, dtype: str) -> torch.Tensor:
        """A tensor at the end, flat."""
        data = bytearray(self.tensors[rank][name])
        kind: torch.dtype = getattr(torch, dtype)
        return torch.frombuffer(data, dtype=kind) if data else torch.empty(0, dtype=kind)


class RankPool:
    """The ranks of one world; a context manager. They are forks, so start it before any thread."""

    def __init__(self, world: int) -> None:
        self.world = world
        self.still_s = STILL_S
        self._folder = tempfile.TemporaryDirectory(prefix="ranks")
        self._turn = 0
        self._ranks: list[tuple[BaseProcess, Connection]] = []
        self.starts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._folder.cleanup()

    def run(self, scripts: list[Script], seed: int = 0, text: str = "") -> Outcome:
        """Run one script per rank; with a text, on the same data, what the Executor makes of it.

        It takes the order that overlaps, with small collectives coalesced.
        """
        if not self._ranks:
            self._start()
        for (_, jobs), script in zip(self._ranks, scripts, strict=True):
            with contextlib.suppress(OSError):
                jobs.send((script, seed, text))
        end, answers = self._watch("ended")
        if end is not End.ENDED:
            self._stop()
        why = next((a[1] for a in answers.values() if a[0] == "error"), "")
        ended = [answers.get(rank, ("", None, None)) for rank in range(self.world)]
        if end is End.ENDED:
            return Outcome(end, [a[1] for a in ended], [a[2] for a in ended])
        return Outcome(end, [], [], why)

    # ------------------------------------------------------------------ ranks

    def _start(self) -> None:
        fork = multiprocessing.get_context("fork")
        self._turn += 1
        self.starts += 1
        path = f"{self._folder.name}/{self._turn}"
        for rank in range(self.world):
            here, there = fork.Pipe()
            others = [connection for _, connection in self._ranks]
            rank_process = fork.Process(
                target=_rank, args=(rank, self.world, path, there, [here, *others]), daemon=True
            )
            rank_process.start()
            there.close()
            self._ranks.append((rank_process, here))
        end, _ = self._watch("ready")
        if end is not End.ENDED:
            self._stop()
            raise RuntimeError("the ranks did not come together")

    def _stop(self) -> None:
        for process, jobs in self._ranks:
            jobs.close()
            if process.pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
        for process, _ in self._ranks:
            process.join()
            process.close()
        self._ranks = []

    # -------------------------------------------------------------- watching

    def _watch(self, last: str) -> tuple[End, dict[int, tuple[Any, ...]]]:
        """Wait for the last answer of all ranks, an error, or until nothing moves any more."""
        answers: dict[int, tuple[Any, ...]] = {}
        stillness = _Stillness([process.pid for process, _ in self._ranks], self.still_s)
        while len(answers) < self.world:
            waiting = {jobs: r for r, (_, jobs) in enumerate(self._ranks) if r not in answers}
            ready: list[Any] = wait(list(waiting), _LOOK_S)
            for jobs in ready:
                try:
                    answer = jobs.recv()
                except (EOFError, OSError):
                    return End.FAILED, {**answers, waiting[jobs]: ("error", "a rank died", None)}
                if answer[0] == "error":
                    return End.FAILED, {**answers, waiting[jobs]: answer}
                if answer[0] == last:
                    answers[waiting[jobs]] = answer
            if not ready and stillness.lasts():
                return End.HUNG, answers
        return End.ENDED, answers


def _rank(rank: int, world: int, path: str, jobs: Connection, others: list[Connection]) -> None:
    for connection in others:  # else the ranks would outlive whoever started them
        connection.close()
    serve(rank, world, path, jobs)


class _Stillness:
    """Whether no thread of some processes has moved for a while.

    gloo's own threads wake up a hundred times a second. Such a one sleeps again only when there
    are no data for it, so it has to have done so a few times. (One that never does has got a
    message that nobody waits for; that takes longer to tell from a large message.)
    """

    def __init__(self, pids: list[int | None], enough_s: float) -> None:
        self._pids = pids
        self._enough_s = enough_s
        self._began = self._since = time.monotonic()
        self._before: dict[str, int] | None = None
        self._loops: dict[str, int] = {}

    def lasts(self) -> bool:
        """Look again; raises RuntimeError if they still move after a long time."""
        now = time.monotonic()
        looked = _switches(self._pids)
        threads, loops = looked if looked is not None else (None, {})
        if threads is None or threads != self._before:
            self._before, self._since, self._loops = threads, now, loops
        if now - self._began > _LIMIT_S:
            raise RuntimeError(f"ranks still busy after {_LIMIT_S:g} s")
        rested = all(count - self._loops.get(t, count) >= 3 for t, count in loops.items())
        return now - self._since >= (self._enough_s if rested else _SPINNING_S)


def _switches(pids: list[int | None]) -> tuple[dict[str, int], dict[str, int]] | None:
    """How often each thread, and each of gloo's loops, went to sleep; None if any other runs."""
    threads: dict[str, int] = {}
    loops: dict[str, int] = {}
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").glob("*"):
            try:
                lines = (task / "status").read_text().splitlines()
            except OSError:
                return None
            fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
            loop = fields["Name"] == _LOOP
            if not loop and fields["State"][0] not in "SZ":
                return None
            found = loops if loop else threads
            found[task.name] = int(fields["voluntary_ctxt_switches"])
    return threads, loops
