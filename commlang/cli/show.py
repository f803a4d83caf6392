"""`commlang show`: the text of a library pattern."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from commlang.resolve.library import library_file, library_files, library_name
from commlang.source import Source


def complete_name(ctx: click.Context, param: click.Parameter, start: str) -> list[CompletionItem]:
    """Names of the library that begin like that, with or without their topic."""
    names = [library_name(path) for path in library_files()]
    names += [name.rpartition("/")[2] for name in names]
    return [CompletionItem(name) for name in sorted(set(names)) if name.startswith(start)]


@click.command("show")
@click.argument("name", shell_complete=complete_name)
def command(name: str) -> None:
    """Print a pattern of the library, below a comment with the path of its file.

    \b
      commlang show ring_all_reduce
      commlang show point_to_point/ring_all_reduce > my_ring.cl
    """
    path = library_file(name)
    source = Source.read(path)
    click.echo(f"# {path}\n{source.text}", nl=not source.text.endswith("\n"))
