"""`commlang fmt`: the one way to write a pattern file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from commlang.cli.files import expand_folders, paths_argument
from commlang.cli.guard import say
from commlang.cli.rewrite import reason, replace_file, show_diff
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
        show_diff(source, text, "formatted", same=before == after)
    elif check:
        if before != after:
            click.echo(f"would reformat {shown}")
    elif path == STDIN:
        click.echo(after, nl=False)
    elif before != after:
        replace_file(path, after)
    return before != after


def _read(path: str) -> bytes:
    if path == STDIN:
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    try:
        with Path(path).open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {reason(error)}") from None
