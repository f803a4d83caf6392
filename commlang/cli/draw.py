"""`commlang draw`: a pattern as a picture, deadlocks included."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from commlang.cli.guard import say
from commlang.cli.lint import size
from commlang.cli.prepare import parameter_settings
from commlang.errors import UsageError

if TYPE_CHECKING:
    from commlang.draw import Subject
    from commlang.program import Program

ENDINGS = {
    ".svg": "svg",
    ".html": "html",
    ".htm": "html",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".dot": "dot",
    ".gv": "dot",
    ".txt": "text",
}


@click.command("draw")
@click.argument("file")
@click.option(
    "--view",
    type=click.Choice(["timeline", "graph", "matrix", "topology"]),
    default="timeline",
    show_default=True,
    help="What to show.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["svg", "html", "mermaid", "dot", "text"]),
    help="How; else as -o ends, or text on a terminal and svg elsewhere.",
)
@click.option("-o", "--output", metavar="OUT", help="Write there, not to standard output.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--preset", metavar="NAME", help="Take parameters and the world from a preset.")
@click.option(
    "--world",
    "--nproc-per-node",
    "world",
    type=click.IntRange(1),
    metavar="N",
    help="How many ranks there are.",
)
@click.option("--ranks", metavar="0..3,7", help="Show these ranks, and no others.")
@click.option(
    "--schedule",
    type=click.Choice(["program", "overlap"]),
    default="program",
    show_default=True,
    help="Events as written, or in the order in which `run` starts and joins them.",
)
@click.option(
    "--max-events",
    type=size,
    metavar="N",
    default="50M",
    show_default=True,
    help="Refuse to expand a pattern to more events.",
)
def command(file: str, **given: Any) -> int:
    """Draw who does what when, and whom it meets.

    FILE is a file, FILE:PATTERN, a name from the library, or `-` for standard input.

    \b
      commlang draw ring_all_reduce
      commlang draw one_f_one_b -o pipeline.html
      commlang draw step.cl --world 1024 -o step.svg
    """
    from commlang.draw import draw

    form = _format(given)
    subject, code = _subject(file, given)
    picture = draw(subject, given["view"], form)
    if given["output"] is None:
        click.echo(picture, nl=False)
    else:
        _write(given["output"], picture)
        say(f"wrote {given['output']}")
    return code


def _format(given: dict[str, Any]) -> str:
    """The format that is asked for by name, else by the ending of the file to write."""
    if given["form"]:
        return given["form"]
    if given["output"] is None:
        from commlang.draw import formats_of

        tty = click.get_text_stream("stdout").isatty()
        return "text" if tty and "text" in formats_of(given["view"]) else "svg"
    ending = PurePath(given["output"]).suffix.lower()
    if ending not in ENDINGS:
        known = ", ".join(ENDINGS)
        raise UsageError(f"-o {given['output']}: give --format, or a name that ends in {known}")
    return ENDINGS[ending]


def _subject(file: str, given: dict[str, Any]) -> tuple[Subject, int]:
    from commlang.draw import Subject

    program = _program(file, given)
    return Subject(program), 0


def _program(file: str, given: dict[str, Any]) -> Program:
    from commlang.program import build
    from commlang.verify import default_world, find_pattern, preset_values

    definition = find_pattern(file)
    values, world = parameter_settings(definition, given["settings"]), given["world"]
    if given["preset"]:
        world, found = preset_values(definition, given["preset"], world)
        values = {**found, **values}
    if world is None:
        world = default_world(definition, values)
    return build(definition, world, values, max_events=given["max_events"])


def _write(path: str, picture: str) -> None:
    from pathlib import Path

    try:
        Path(path).write_text(picture, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
