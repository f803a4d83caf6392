"""`commlang lint`: everything that is wrong with patterns, before they run."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from commlang.cli.files import expand_folders, paths_argument
from commlang.cli.guard import say
from commlang.errors import UsageError

if TYPE_CHECKING:
    from commlang.verify import Choice, Outcome


def size(text: str) -> int:
    """A whole number from 1 up, with or without a suffix: 8, 64Ki, 10M."""
    from commlang.syntax.literals import number

    try:
        value, unit = number(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if unit or not isinstance(value, int) or not 1 <= value < 1 << 62:
        raise click.BadParameter(f"`{text}` is not a whole number from 1 up")
    return value


@click.command("lint")
@paths_argument
@click.option("--world", type=size, metavar="N", help="Check for N ranks.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--preset", metavar="NAME", help="Take parameters and the world from a preset.")
@click.option(
    "--max-events",
    type=size,
    metavar="N",
    default="50M",
    show_default=True,
    help="Refuse to expand a pattern to more events.",
)
@click.option(
    "--output-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people or for programs.",
)
def command(
    paths: tuple[str, ...],
    world: int | None,
    settings: tuple[str, ...],
    preset: str | None,
    max_events: int,
    output_format: str,
) -> int:
    """Check pattern files: syntax, names, types, matching and freedom from deadlock.

    PATH is a file, a folder, a name from the library, `-` for standard input, or FILE:PATTERN for
    one pattern of a file.

    \b
      commlang lint patterns/                       every pattern file below a folder
      commlang lint ring.cl --world 8 --set n=64Mi  for 8 ranks and this size
      commlang lint step.cl:forward --preset dgx    one pattern, with one of its presets

    A pattern is checked with the ranks and parameters given; else with its defaults, and once for
    each of its presets. By default it has as many ranks as its mesh has places, else 4, else the
    fewest that it accepts. The answer is exact for these, and says nothing of others: an exchange
    of pairs may be right for 4 ranks and wrong for 5. Exit code 1 means findings, 2 that a file
    could not be read or an option made no sense.
    """
    # numpy's OpenBLAS starts a thread per core on import, and nothing here multiplies matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from commlang.verify import Choice, Outcome, parse_settings
    from commlang.verify.values import MAX_WORLD

    if world is not None and world > MAX_WORLD:
        raise UsageError(f"--world {world}: a world has at most {MAX_WORLD:,} ranks")
    choice = Choice(world, parse_settings(settings), preset)
    outcome = Outcome()
    unread = _lint_all(paths, choice, max_events, outcome)
    unused = outcome.unused(choice)
    if unused and not unread:
        raise UsageError(unused)
    if outcome.files:
        _print(outcome, output_format)
    return 2 if unread else int(bool(outcome.findings))


def _lint_all(
    paths: tuple[str, ...], choice: Choice, max_events: int, outcome: Outcome
) -> list[UsageError]:
    """Lint into the outcome; what cannot be read is said, and the rest is linted all the same."""
    from commlang.verify import lint_source, locate_source, split_target

    failed: list[UsageError] = []

    def fail(error: UsageError) -> None:
        failed.append(error)
        say(f"error: {error}")

    for path in expand_folders(paths, fail):
        file, pattern = split_target(path)
        try:
            source = locate_source(file)
            lint_source(source, pattern, choice, max_events=max_events, outcome=outcome)
        except UsageError as error:
            fail(error)
    return failed


def _print(outcome: Outcome, output_format: str) -> None:
    from commlang.report.lint import lint_json, render_text, wants_colour

    if output_format == "json":
        import json

        click.echo(json.dumps(lint_json(outcome), indent=2, ensure_ascii=False, default=str))
    else:
        click.echo(render_text(outcome, colour=wants_colour(sys.stdout, os.environ)), color=True)
