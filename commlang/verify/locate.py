"""From what a person names on a command line to the text of a pattern file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from commlang.errors import UsageError
from commlang.resolve.library import SUFFIX, library_file
from commlang.source import MAX_BYTES, Source

STDIN = "-"


def split_target(text: str) -> tuple[str, str | None]:
    """`FILE` or `FILE:PATTERN` as the file and the pattern; a file of that very name wins."""
    file, colon, pattern = text.rpartition(":")
    if colon and file and pattern.isidentifier() and not os.path.lexists(text):
        return file, pattern
    return text, None


def locate_source(text: str) -> Source:
    """Read a file, standard input (`-`), or the library file of that name.

    Raises UsageError if there is no such file, or it is no text.
    """
    if text == STDIN:
        return Source.decode(sys.stdin.buffer.read(MAX_BYTES + 1), "<stdin>")
    if not text:
        raise UsageError("an empty name names no file")
    if os.path.lexists(text) or looks_like_path(text):
        return Source.read(text)
    try:
        return Source.read(library_file(text))
    except UsageError as error:
        raise UsageError(f"there is no file {text}, and {error}") from None


def looks_like_path(text: str) -> bool:
    """Whether a name that is no file here can only have meant one."""
    return text.endswith(SUFFIX) or Path(text).is_absolute() or text.startswith(".")
