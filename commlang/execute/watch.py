"""The watchdog of one rank: a thread that ends the process when the run cannot go on.

A rank stuck inside a collective cannot be interrupted from Python, so whoever notices the trouble
(the thread, or the main thread by an exception) writes the rank's last report and leaves by
`os._exit`; destructors of a broken process group could wait for peers that are gone.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, NoReturn

from commlang.execute.diagnosis import Narrator, WaitGraph, explain
from commlang.execute.progress import DONE, MEETING, Board, alive
from commlang.execute.report import (
    ENDED_BADLY,
    NOTES_FILE,
    RankReport,
    State,
    failure_fields,
    write_reports,
)
from commlang.records import record

if TYPE_CHECKING:
    from pathlib import Path

    from commlang.execute.bulletin import Bulletin

# How long a rank that ends waits for the others to say where they stand.
_GRACE_S = 2.0
_STOP = b"\0"


@record
class Launched:
    """Set in a rank that `launch` started: its launcher reports failures, and owns `run_dir`.

    A launcher that does not see how each rank ends is `blind`: a rank that it ends has to say so.
    """

    run_dir: Path
    launcher: int
    blind: bool = False

    @property
    def is_orphan(self) -> bool:
        """Whether the launcher is gone; one that is blind is not the parent, but lives here too."""
        return not alive(self.launcher) if self.blind else os.getppid() != self.launcher


class Watch:
    """Watches over the rank of one row of a board, from `start` to `close`.

    `timeout` is the time in seconds without progress, of this rank and of all that it waits for,
    after which the rank fails.
    """

    def __init__(
        self, rank: int, board: Board, row: int, timeout: float, launched: Launched | None = None
    ) -> None:
        self._rank = rank
        self._board = board
        self._row = row
        self._timeout = timeout
        self._launched = launched
        self._bulletin: Bulletin | None = None
        self._narrator = Narrator()
        self._last: int | None = None
        self._published: int | None = None
        self._next_check = 0.0
        self._ending = threading.Lock()
        self._exchanging = threading.Lock()
        self._closing = False
        self._wake_r, self._wake_w = os.pipe()
        self._thread = threading.Thread(target=self._run, name="commlang-watch", daemon=True)
        self._old_signals: dict[int, Any] = {}

    @property
    def position(self) -> memoryview:
        """`position[0] = k` says that the rank is at its k-th step; any change is progress.

        Over repetitions of the same steps k must go on counting. Ask for it again after `connect`.
        """
        return self._board.cell(self._row)

    def start(self) -> None:
        """Begin: the rank counts as running, and its signals end it in good order."""
        self._board.start(self._row, self._rank)
        self._take_signals()
        self._thread.start()

    def connect(self, board: Board, row: int, bulletin: Bulletin | None) -> None:
        """Go over to a board shared by the node, and for other nodes to a bulletin."""
        if board is not self._board:
            board.start(row, self._rank)
        self._bulletin, self._row, self._board = bulletin, row, board

    def connect_bulletin(self, bulletin: Bulletin) -> None:
        """Tell other nodes of this rank as well; its board is its launcher's."""
        self._bulletin = bulletin
        if self._old_signals:
            # A rank that its agent ends has to tell the other nodes, so SIGTERM no longer kills.
            signal.signal(signal.SIGTERM, _leave_to_thread)

    def report(self) -> RankReport:
        """What this rank can say of itself."""
        return self._board.report(self._row)

    def follow(self, narrator: Narrator) -> None:
        """Take the meaning of positions from `narrator`."""
        self._narrator = narrator

    def done(self) -> None:
        """Say that the rank's work is over; with other nodes, wait until theirs is too."""
        self.position[0] = DONE
        self._board.end(self._row, State.DONE)
        if self._bulletin:
            self._bulletin.publish(self.report())
            # A rank that fails now raises the alarm, on which the thread ends this process.
            self._bulletin.finish()
            with self._exchanging:
                bulletin, self._bulletin = self._bulletin, None
            if bulletin:
                bulletin.leave()

    def close(self) -> None:
        """Stop watching. A launched rank stays watched: it may yet wait for a lost neighbour."""
        if self._launched:
            return
        self._closing = True
        os.write(self._wake_w, _STOP)
        self._thread.join()
        self._restore_signals()
        os.close(self._wake_r)
        os.close(self._wake_w)

    def fail(self, error: BaseException) -> NoReturn:
        """End the process because of `error`, from the main thread."""
        self._end(State.FAILED, **failure_fields(error))

    def _take_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        os.set_blocking(self._wake_w, False)
        signal.set_wakeup_fd(self._wake_w, warn_on_full_buffer=False)
        for signum in (signal.SIGINT, signal.SIGTERM):
            self._old_signals[signum] = signal.signal(signum, _leave_to_thread)
        if self._launched and not self._launched.blind:
            # The agent's way to end its ranks: instant, even for one that never lets the GIL go.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _restore_signals(self) -> None:
        if self._old_signals:
            signal.set_wakeup_fd(-1)
        for signum, handler in self._old_signals.items():
            signal.signal(signum, handler)

    def _run(self) -> None:
        interval = min(0.25, self._timeout / 8)
        asleep = time.monotonic()
        while True:
            ready, _, _ = select.select([self._wake_r], [], [], interval)
            if time.monotonic() - asleep > interval + self._timeout / 4:
                # This process was stopped for a while, perhaps with all others: nobody stalled.
                self._board.touch(self._row)
            asleep = time.monotonic()
            woken = os.read(self._wake_r, 1) if ready else b""
            if self._closing:
                return
            if woken and woken != _STOP:
                self._interrupted(woken[0])
            try:
                self._tick()
            except RuntimeError as error:
                # Torch's errors of a store that is gone.
                self._lost_store(error)

    def _tick(self) -> None:
        position = self.position[0]
        if position != self._last:
            self._last = position
            self._board.touch(self._row)
        state = self._board.state(self._row)
        with self._exchanging:
            if self._bulletin:
                self._exchange(self._bulletin)
        if self._neighbour_ended(state):
            self._end(State.STOPPED)
        if state is State.RUNNING:
            self._check_progress()

    def _exchange(self, bulletin: Bulletin) -> None:
        if self._published != self._last:
            self._published = self._last
            bulletin.publish(self.report())
        if bulletin.alarm():
            self._end(State.STOPPED)

    def _neighbour_ended(self, state: State) -> bool:
        rows = range(len(self._board.ranks))
        if not self._launched:
            return any(self._board.state(row) in ENDED_BADLY for row in rows)
        # The agent sees ranks die, unless they leave with exit code 0: then it would wait for ever.
        return state is State.DONE and any(self._board.vanished(row) for row in rows)

    def _check_progress(self) -> None:
        now = time.monotonic()
        if now < self._next_check or self.report().idle_s <= self._timeout / 2:
            return
        # Not at every tick, since with many ranks all of them ask the one store.
        self._next_check = now + self._timeout / 8
        reports = self._reports()
        involved = WaitGraph(reports, self._narrator).involved(reports[0].rank)
        live = [r for r in reports if r.rank in involved and r.state is not State.DONE]
        # A rank that looks for others has a limit of its own, at which it can say what is wrong.
        limit = 2 * self._timeout if self._last == MEETING else self._timeout
        if min(r.idle_s for r in live) > limit:
            self._end(State.TIMED_OUT)

    def _reports(self) -> list[RankReport]:
        """What is known of every rank, this one's first."""
        known = {r.rank: r for r in self._bulletin.read()} if self._bulletin else {}
        known |= {r.rank: r for r in self._board.reports()}
        own = known.pop(self._rank)
        return [own, *known.values()]

    def _interrupted(self, signum: int) -> NoReturn:
        launched = self._launched
        if launched and launched.is_orphan:
            # Nobody is left to tidy up; every rank tries, one of them does.
            shutil.rmtree(launched.run_dir, ignore_errors=True)
        self._end(State.STOPPED, message=f"stopped by {signal.Signals(signum).name}")

    def _lost_store(self, error: RuntimeError) -> None:
        if self._board.state(self._row) is State.DONE:
            self._bulletin = None
            return
        message = f"lost the store that rank 0's node holds ({str(error).splitlines()[0]})"
        self._end(State.FAILED, message=message, consequence=True)

    def _end(self, state: State, **failure: Any) -> NoReturn:
        # Never released: the process ends here, and whoever comes second has nothing to add.
        self._ending.acquire()
        try:
            if state is State.TIMED_OUT:
                self._end_suspended()
            self._board.end(self._row, state, failure)
            reports = self._board.reports()
            alone = self._launched and not self._bulletin
            if not alone or failure.get("consequence"):
                reports = self._await_others(time.monotonic() + _GRACE_S)
            self._tell(reports)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(failure.get("known_code", 1))

    def _end_suspended(self) -> None:
        """Note which ranks of this node are stopped, and kill those that commlang has started.

        Their launcher would wait half a minute for them to heed a gentler signal.
        """
        for pid in self._board.note_suspended():
            if self._launched:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _await_others(self, deadline: float) -> list[RankReport]:
        """Make this rank's end known, and return the others' once they have ended or at `deadline`.

        A launched rank waits to be ended by its agent: leaving earlier, it could be taken for the
        rank whose death it only suffers from.
        """
        reports = self._board.reports()
        with contextlib.suppress(RuntimeError):  # a store that is gone
            if self._bulletin:
                self._bulletin.publish(self.report())
                self._bulletin.raise_alarm()
            while time.monotonic() < deadline:
                reports = self._reports()
                if self._all_ended(reports):
                    break
                time.sleep(0.05 + len(reports) / 2000)
            if self._bulletin:
                enders = sum(r.state in ENDED_BADLY for r in reports)
                self._bulletin.part(enders, deadline)
        return reports

    def _all_ended(self, reports: list[RankReport]) -> bool:
        if self._launched and not self._bulletin:
            return False
        for report in reports:
            # Only its own node can see that a rank has died, or is stopped.
            if self._bulletin and (report.state is State.VANISHED or report.suspended):
                self._bulletin.publish(report)
        open_ended = (State.ABSENT, State.RUNNING)
        return all(r.state not in open_ended or r.suspended for r in reports)

    def _tell(self, reports: list[RankReport]) -> None:
        """Print the diagnosis if nobody else will, or leave it to the launcher."""
        if self._launched:
            here = self._board.ranks
            others = [r for r in reports if r.rank not in here or r.state is State.VANISHED]
            if others:
                write_reports(self._launched.run_dir / NOTES_FILE, others)
            return
        if self._rank != min(r.rank for r in reports if r.state in ENDED_BADLY):
            return
        text, _ = explain(reports, self._narrator)
        with contextlib.suppress(OSError):
            sys.stderr.write(f"commlang: {text}\n")


def _leave_to_thread(signum: int, frame: object) -> None:
    """A handler that does nothing: the wake-up descriptor has already told the thread."""
