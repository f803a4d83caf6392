"""`commlang draw`: a pattern as a picture, deadlocks included."""

from __future__ import annotations

import sys
from pathlib import Path, PurePath
from typing import Any

import click

from commlang.cli.files import refuse_input
from commlang.cli.guard import say
from commlang.cli.lint import size
from commlang.errors import UsageError

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
    "--topology",
    metavar="MACHINE",
    help="Draw by the times of a simulation there; for --view topology, the machine to draw.",
)
@click.option(
    "--from",
    "trace",
    metavar="TRACE",
    help="Draw what `run --trace` has measured, below what was planned.",
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
      commlang draw ddp_step --topology dgx-h100 -o step.html
      commlang run ddp_step --trace run.json && commlang draw ddp_step --from run.json -o run.html

    Pages and SVGs need nothing else: no network, no scripts of others. Of many ranks some of each
    kind are shown, of many events blocks; the picture says what it leaves out. A pattern that the
    check refuses is drawn too, a deadlock as the ring of its waits; then the exit code is 1.
    """
    from commlang.cli.drawing import subject_of
    from commlang.draw import draw, refuse_other

    form = _format(given)
    refuse_other(given["view"], form)
    read = {"pattern": file, "trace": given["trace"], "machine": given["topology"]}
    refuse_input("-o", given["output"], **read)
    subject, right = subject_of(file, given)
    picture = draw(subject, given["view"], form)
    if given["output"] is None:
        # Text is for a terminal of any encoding; the others are files, and those are UTF-8.
        known = form == "text" or sys.stdout.isatty()
        click.echo(picture if known else picture.encode(errors="replace"), nl=False)
    else:
        _write(given["output"], picture)
        say(f"wrote {given['output']}")
    return 0 if right else 1


def _format(given: dict[str, Any]) -> str:
    """The format that is asked for by name, else by the ending of the file to write."""
    if given["form"]:
        return given["form"]
    if given["output"] is None:
        from commlang.draw import formats_of

        have = formats_of(given["view"])
        return "text" if sys.stdout.isatty() and "text" in have else "svg"
    ending = PurePath(given["output"]).suffix.lower()
    if ending not in ENDINGS:
        known = ", ".join(ENDINGS)
        raise UsageError(f"-o {given['output']}: give --format, or a name that ends in {known}")
    return ENDINGS[ending]


def _write(path: str, picture: str) -> None:
    try:
        Path(path).write_text(picture, encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
