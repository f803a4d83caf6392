"""Pattern files on the command line: files, folders of them, `-`, and library names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from commlang.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

SUFFIX = ".cl"

# As a click.Path a shell completes it; whether it can be read is told in our words.
paths_argument = click.argument(
    "paths", nargs=-1, required=True, type=click.Path(readable=False), metavar="PATH..."
)


def expand_folders(paths: Iterable[str], fail: Callable[[UsageError], None]) -> Iterator[str]:
    """Each path once, and for a folder all pattern files below it, in order.

    Hidden folders are left out. A folder without a pattern file is given to `fail`.
    """
    seen: set[str] = set()
    for path in paths:
        if not os.path.isdir(path):  # noqa: PTH112 (pathlib costs more than the test)
            found = [path]
        else:
            found = sorted(_below(path))
            if not found:
                fail(UsageError(f"there is no {SUFFIX} file in {path}"))
        for file in found:
            if file not in seen:
                seen.add(file)
                yield file


def _below(folder: str) -> Iterator[str]:
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.endswith(SUFFIX) and not name.startswith("."):
                path = os.path.join(root, name)  # noqa: PTH118 (keeps `..` as it was written)
                yield path.removeprefix("./")
