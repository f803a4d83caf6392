"""Changing a file that the user keeps: in one step, or only shown."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commlang.errors import UsageError

if TYPE_CHECKING:
    from commlang.source import Source


def replace_file(path: str, data: bytes) -> None:
    """Put new contents in place of a file's in one step, so that no failure can destroy it."""
    target = Path(path).resolve()  # a link stays a link
    if not os.access(target, os.W_OK):
        raise UsageError(f"cannot write {path}: it is read-only")
    temporary: Path | None = None
    try:
        with tempfile.NamedTemporaryFile(
            dir=target.parent, prefix=f".{target.name}.", delete=False
        ) as stream:
            temporary = Path(stream.name)
            stream.write(data)
            stream.flush()
            os.fchmod(stream.fileno(), target.stat().st_mode & 0o7777)
            os.fsync(stream.fileno())
        temporary.replace(target)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {reason(error)}") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def create_file(path: str, text: str) -> None:
    """Write a new file, whole or not at all; raises UsageError, also if there is one already."""
    try:
        with Path(path).open("x", encoding="utf-8") as stream:
            try:
                stream.write(text)
                stream.flush()
            except OSError:
                Path(path).unlink()
                raise
    except FileExistsError:
        raise UsageError(f"{path} exists already; choose another name") from None
    except FileNotFoundError:
        raise UsageError(f"cannot write {path}: there is no folder {Path(path).parent}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write {path}: {reason(error)}") from None


def refuse_to_create(path: str) -> None:
    """Raise what `create_file` would, before the work for it is done; what can be known by then."""
    if Path(path).exists():
        raise UsageError(f"{path} exists already; choose another name")
    if not Path(path).parent.is_dir():
        raise UsageError(f"cannot write {path}: there is no folder {Path(path).parent}")


def as_before(path: str, text: str) -> bytes:
    """A text with the line endings, and the byte order mark, that a file has now."""
    data = Path(path).read_bytes()
    mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    ending = "\r\n" if data.count(b"\r\n") * 2 > data.count(b"\n") else "\n"
    return mark + text.replace("\n", ending).encode()


def show_diff(source: Source, text: str, word: str, *, same: bool) -> None:
    """Print how a text differs from its source; `word` says what it is, as in `formatted`.

    `same` tells that not even line endings or a byte order mark would change.
    """
    from difflib import unified_diff

    before, after = source.text.splitlines(keepends=True), text.splitlines(keepends=True)
    lines = list(unified_diff(before, after, source.path, f"{source.path} ({word})"))
    if not lines and not same:
        click.echo(f"{source.path}: only its line endings or its byte order mark would change")
    for line in lines:
        click.echo(line, nl=False)
        if not line.endswith("\n"):
            click.echo("\n\\ No newline at end of file")


def reason(error: OSError | ValueError) -> str:
    """What the system says of a failure."""
    return getattr(error, "strerror", None) or str(error)
