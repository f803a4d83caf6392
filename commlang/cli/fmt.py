"""`commlang fmt`: the one way to write a pattern file."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import click

from commlang.cli.files import expand_folders, paths_argument
from commlang.cli.guard import say
from commlang.errors import CommlangError, UsageError
from commlang.source import MAX_BYTES, Source

STDIN = "-"


@click.command("fmt")
@paths_argument
@click.option("--check", is_flag=True, help="Write nothing; name the files that would change.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change.")
def command(paths: tuple[str, ...], check: bool, diff: bool) -> int:
    """Format pattern files in place; comments stay, and so does the meaning.

    PATH is a file, a folder, or `-` to format standard input to standard output.

    \b
      commlang fmt patterns/           every pattern file below a folder
      commlang fmt --check --diff .    for a CI: exit code 1 if a file would change
      commlang fmt - < ring.cl         for an editor

    A file that does not parse is left as it is, with exit code 1; one that cannot be read or
    written gives exit code 2.
    """
    codes = [0]
    changed = unchanged = 0

    def fail(error: CommlangError) -> None:
        codes.append(error.exit_code)
        text = str(error)
        say(text if text.startswith("error") else f"error: {text}")

    for path in expand_folders(paths, fail):
        try:
            if _format(path, check=check, diff=diff):
                changed += 1
            else:
                unchanged += 1
        except CommlangError as error:
            fail(error)
    dry = check or diff
    if dry and changed:
        codes.append(1)
    if STDIN not in paths and changed + unchanged:
        files = "1 file" if changed + unchanged == 1 else f"{changed + unchanged} files"
        say(f"{changed} of {files} would change" if dry else f"formatted {changed} of {files}")
    return max(codes)


def _format(path: str, *, check: bool, diff: bool) -> bool:
    """Format one file, or show what that would do; whether it is, or would be, another."""
    from commlang.syntax.formatter import format_source

    before = _read(path)
    shown = "<stdin>" if path == STDIN else path
    source = Source.decode(before, shown)
    text = format_source(source)
    after = text.encode()
    if diff:
        _show_diff(source, text, same=before == after)
    elif check:
        if before != after:
            click.echo(f"would reformat {shown}")
    elif path == STDIN:
        click.echo(after, nl=False)
    elif before != after:
        _replace(path, after)
    return before != after


def _read(path: str) -> bytes:
    if path == STDIN:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    try:
        with Path(path).open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {_reason(error)}") from None


def _replace(path: str, data: bytes) -> None:
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
        raise UsageError(f"cannot write {path}: {_reason(error)}") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _show_diff(source: Source, text: str, *, same: bool) -> None:
    from difflib import unified_diff

    before, after = source.text.splitlines(keepends=True), text.splitlines(keepends=True)
    lines = list(unified_diff(before, after, source.path, f"{source.path} (formatted)"))
    if not lines and not same:
        click.echo(f"{source.path}: only its line endings or its byte order mark would change")
    for line in lines:
        click.echo(line, nl=False)
        if not line.endswith("\n"):
            click.echo("\n\\ No newline at end of file")


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)
