"""`commlang draw`: a pattern as a picture, deadlocks included."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from commlang.cli.guard import say
from commlang.cli.lint import size
from commlang.cli.prepare import parameter_settings
from commlang.diagnostics import Severity
from commlang.errors import UsageError

if TYPE_CHECKING:
    from commlang.checks.deadlock import Wait
    from commlang.diagnostics import Diagnostic
    from commlang.draw import Subject
    from commlang.program import Program

RINGS = ("CL201", "CL220")
"""Findings that tell of a ring of waits under rendezvous semantics."""
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
    found, ring = _findings(program)
    for finding in found:
        say(finding.render())
    wrong = any(finding.severity is Severity.ERROR for finding in found)
    if wrong:
        say(f"`{program.name}` is drawn all the same")
    return Subject(program, ranks=_ranks(given["ranks"], program.world), ring=ring), int(wrong)


def _findings(program: Program) -> tuple[list[Diagnostic], tuple[Wait, ...]]:
    """What the check says but for contracts, which no picture shows; and the deadlock's waits."""
    from commlang.checks import check_program
    from commlang.checks.facts import gather_facts
    from commlang.checks.ring import from_lowest_rank
    from commlang.checks.selection import Selection
    from commlang.transports import RENDEZVOUS

    found = check_program(program, RENDEZVOUS, Selection(ignore=("CL24", "CL4")))
    found = [finding for finding in found if finding.severity is not Severity.ADVICE]
    if all(finding.code not in RINGS for finding in found):
        return found, ()
    facts = gather_facts(program)
    ring = facts.deadlock.certain or facts.deadlock.possible
    return found, tuple(from_lowest_rank(facts, ring) if ring else ())


def _ranks(text: str | None, world: int) -> tuple[int, ...] | None:
    """The ranks that `0..3,7` names; raises UsageError for what is none."""
    if text is None:
        return None
    found: set[int] = set()
    for part in text.split(","):
        first, dots, last = part.strip().partition("..")
        last = last if dots else first
        if not (first.isdecimal() and last.isdecimal() and len(first + last) < 20):
            raise UsageError(f"--ranks {text}: write ranks as in `0..3,7`")
        low, high = int(first), int(last)
        if not low <= high < world:
            raise UsageError(
                f"--ranks {text}: with {world:,} ranks they go from 0 to {world - 1:,}"
            )
        found |= set(range(low, high + 1))
    return tuple(sorted(found))


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
