"""From whatever ends a command to one message and an exit code, never a traceback."""

from __future__ import annotations

import errno
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from commlang.errors import CommlangError

if TYPE_CHECKING:
    from collections.abc import Callable

DEBUG = "COMMLANG_DEBUG"
INTERRUPTED = 130


def guarded(work: Callable[[], object]) -> int:
    """The exit code of `work`: what it returns, if that is an int, or that of what it raises."""
    try:
        _prepare_streams()
        result = work()
        sys.stdout.flush()
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except KeyboardInterrupt:
        return _interrupted()
    except Exception as error:
        return _failed(error)
    return result if isinstance(result, int) else 0


def leave(code: int) -> int:
    """End the process without taking the interpreter apart, a tenth of the time of a short lint.

    With torch loaded there are threads and groups to end, so then it only returns the code.
    """
    if "torch" in sys.modules:
        return code
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or 1
    os._exit(code)


def say(text: str) -> None:
    """A line on standard error, if that is still open."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def _failed(error: Exception) -> int:
    import click

    match error:
        case CommlangError():
            text = str(error)
            # A refused pattern is told as `error[CODE]: …` already.
            say(text if text.startswith(("error", "warning")) else f"error: {text}")
            return error.exit_code
        case click.exceptions.Abort():
            return _interrupted()
        case click.exceptions.NoArgsIsHelpError():
            say(error.format_message())
            return 2
        case click.UsageError():
            say(f"error: {_sentence(error.format_message())}")
            if error.ctx is not None:
                say(f"try `{error.ctx.command_path} --help`")
            return 2
        case click.ClickException():
            say(f"error: {error.format_message()}")
            return 2
        case OSError(errno=errno.EPIPE):
            return _closed_pipe()
        case OSError():
            name = f": {error.filename}" if error.filename else ""
            say(f"error: {error.strerror or error}{name}")
            return 2
        case MemoryError():
            say("error: out of memory; lower the parameters or the world, or set --max-events")
            return 2
        case RecursionError():
            say("error: the pattern is nested too deeply")
            return 2
        case _:
            return _unexpected(error)


def _sentence(message: str) -> str:
    """Click's message in the style of ours: no capital, no full stop."""
    message = message.rstrip(".")
    return message[:1].lower() + message[1:]


def _unexpected(error: Exception) -> int:
    if os.environ.get(DEBUG):
        import traceback

        traceback.print_exception(error)
    lines = str(error).splitlines() or ["no message"]
    hint = f"please report it, with the traceback that {DEBUG}=1 shows"
    say(f"internal error: {type(error).__name__}: {lines[0]}; {hint}")
    return 2


def _interrupted() -> int:
    with suppress(ValueError):  # not the main thread, so not ours to set
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C has nothing left to end
    say("interrupted")
    return INTERRUPTED


def _closed_pipe() -> int:
    """Whoever read our output has enough; what is left must not be flushed at exit either."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    return 1


def _prepare_streams() -> None:
    """A closed standard stream drops what is written to it, as a shell's `>/dev/null` would.

    A terminal that is not UTF-8 gets `\\u2026` for `…` instead of an error.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            null = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 (for good)
            setattr(sys, name, null)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
