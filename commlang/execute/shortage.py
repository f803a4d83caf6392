"""Memory that ran out: told with what asked for it and how much, and by whom else."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from commlang.errors import CommlangError

if TYPE_CHECKING:
    from collections.abc import Generator

_TRIED = re.compile(r"tried to allocate (\d+) bytes")
_VMSTAT = Path("/proc/vmstat")
_UNITS = ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)


def lacks_memory(error: BaseException) -> bool:
    """Whether this is Python's or torch's way to say that memory ran out.

    torch has a RuntimeError for the CPU, which only its text tells apart.
    """
    named = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return named or (isinstance(error, RuntimeError) and "allocate memory" in str(error))


def shortage(error: BaseException) -> str:
    """What is said of such an error: how many bytes were asked for, if it tells."""
    if tried := _TRIED.search(str(error)):
        return f"out of memory: {_bytes_text(int(tried[1]))} were asked for"
    said = str(error).split("\n", 1)[0]
    return f"out of memory: {said}" if said else "out of memory"


@contextmanager
def allocating(what: str, size: int) -> Generator[None]:
    """Raise CommlangError that names `what` and its size in bytes if there is no memory for it."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
        raise CommlangError(f"out of memory for {what}, which takes {_bytes_text(size)}") from error


def oom_kills() -> int | None:
    """How many processes the kernel of this machine has killed for want of memory, if it tells."""
    try:
        found = re.search(r"^oom_kill (\d+)$", _VMSTAT.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) if found else None


def _bytes_text(size: int) -> str:
    exact = f"{size:,} bytes"
    return next(
        (f"{exact} ({size / unit:.3g} {name})" for name, unit in _UNITS if size >= unit), exact
    )
