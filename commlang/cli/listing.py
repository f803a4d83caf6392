"""`commlang list`: what the pattern library has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from commlang.resolve.library import library_files, library_name

if TYPE_CHECKING:
    from pathlib import Path


@click.command("list")
@click.argument("topic", required=False)
def command(topic: str | None) -> None:
    """List the shipped patterns by topic, each with what it does.

    \b
      commlang list                    all of them
      commlang list point_to_point     one topic
      commlang show ring_all_reduce    print one
      commlang run ring_all_reduce     run it

    In a pattern of your own: `from ring_all_reduce import ring_all_reduce`.
    """
    topics: dict[str, list[tuple[str, str]]] = {}
    for path in library_files():
        group, _, name = library_name(path).rpartition("/")
        if topic in (None, group):
            topics.setdefault(group, []).append((name, first_line(path)))
    if not topics:
        known = sorted({library_name(path).rpartition("/")[0] for path in library_files()})
        raise click.UsageError(f"there is no topic `{topic}`; there are {', '.join(known)}")
    width = max(len(name) for rows in topics.values() for name, _ in rows)
    for number, (group, rows) in enumerate(topics.items()):
        click.echo(f"\n{group}" if number else group)
        for name, text in rows:
            click.echo(f"  {name:<{width}}  {text}".rstrip())


def first_line(path: Path) -> str:
    """The first line of the docstring of a file's pattern."""
    from commlang.source import Source
    from commlang.syntax import ast
    from commlang.syntax.parser import parse

    patterns = [p for p in parse(Source.read(path)).items if isinstance(p, ast.Pattern)]
    named = [p for p in patterns if p.name in ("main", path.stem)]
    doc = next((p.doc for p in [*named, *patterns] if p.doc), None)
    return doc.value.strip().split("\n", 1)[0] if doc else ""
