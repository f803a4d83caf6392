"""Functions compiled by numba, which is loaded here only (the extra `fast`).

Machine code is kept for the next process in the user's cache folder, if nobody else can write
there: what lies there is run. It is never put beside the package, which may be another's.
"""

from __future__ import annotations

import os
import stat
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

from commlang.version import __version__

_FOLDER = Lock()


@cache
def compiled(function: Any) -> Any:
    """The function in machine code, compiled when it is first called unless the cache has it."""
    numba, config = _module("numba"), _module("numba.core.config")
    folder = cache_folder()
    # numba asks for the folder when it decorates; later functions of others keep theirs. Two
    # threads that set it at once would send machine code elsewhere.
    with _FOLDER:
        before = config.CACHE_DIR
        config.CACHE_DIR = str(folder or "")
        try:
            return numba.njit(cache=folder is not None, nogil=True)(function)
        finally:
            config.CACHE_DIR = before


def _module(name: str) -> Any:
    return import_module(name)


def cache_folder() -> Path | None:
    """A folder for machine code that only this user can write, or None."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    folder = Path(base) / "commlang" / f"numba-{__version__}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder if all(map(_private, (folder, folder.parent))) else None
    except OSError:
        return None


def _private(folder: Path) -> bool:
    found = folder.stat()
    others = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return found.st_uid == os.geteuid() and not others
