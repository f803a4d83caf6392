"""Signals that end a launcher, as an exception: its ranks are ended and its files deleted first."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from commlang.execute.report import RunInterrupted

if TYPE_CHECKING:
    from collections.abc import Generator

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
# Longer than any launcher takes to end its ranks.
_CLEAN_UP_S = 25.0


class Interrupted(BaseException):
    """This process was told to end; no `except Exception` on the way may swallow that."""

    def __init__(self, signum: int) -> None:
        super().__init__()
        self.signum = signum


@contextmanager
def signals_raised() -> Generator[None]:
    """Raise Interrupted on the first of SIGNALS, and not again while that is dealt with.

    Whoever presses Ctrl-C twice would else break off the clean-up. Where no one in the block had
    more to tell of it, it leaves as RunInterrupted. Does nothing outside the main thread, which
    signals do not reach. Handlers are those of before afterwards.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    owner, quiet_until = os.getpid(), 0.0

    def caught(signum: int, frame: object) -> None:
        nonlocal quiet_until
        if os.getpid() != owner:  # a rank that was forked just now, and has no handlers of its own
            os._exit(128 + signum)
        # Not for ever: Python drops an exception that is raised inside of a finaliser.
        if time.monotonic() > quiet_until:
            quiet_until = time.monotonic() + _CLEAN_UP_S
            raise Interrupted(signum)

    before = {signum: signal.signal(signum, caught) for signum in SIGNALS}
    try:
        yield
    except Interrupted as error:
        raise RunInterrupted(interrupted_by(error.signum), (), error.signum) from None
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def interrupted_by(signum: int) -> str:
    """The first line of what is said after a signal."""
    return f"interrupted by {signal.Signals(signum).name}"


def ignore_signals() -> None:
    """Let no signal disturb what is left to do; does nothing outside the main thread."""
    if threading.current_thread() is threading.main_thread():
        for signum in SIGNALS:
            signal.signal(signum, signal.SIG_IGN)
