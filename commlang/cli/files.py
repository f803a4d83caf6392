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


def refuse_input(option: str, output: str | None, **inputs: str | None) -> None:
    """What is written must not take the place of what was read; raises UsageError if it would.

    `inputs` are files by what they are; a pattern's may end in `:PATTERN`, and others that do not
    exist, such as names from a library, are no files.
    """
    if not output or not os.path.exists(output):  # noqa: PTH110 (pathlib costs more than the test)
        return
    for what, path in inputs.items():
        for name in (path, path.rpartition(":")[0]) if path else ():
            if os.path.exists(name) and os.path.samefile(name, output):  # noqa: PTH110, PTH121
                raise UsageError(f"{option} {output}: this is the {what} itself; name another file")


def _below(folder: str) -> Iterator[str]:
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.endswith(SUFFIX) and not name.startswith("."):
                path = os.path.join(root, name)  # noqa: PTH118 (keeps `..` as it was written)
                yield path.removeprefix("./")
