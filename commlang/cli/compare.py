"""`commlang compare`: patterns side by side, by what they send, keep, take and are proven to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from commlang.cli.guard import say
from commlang.cli.lint import size
from commlang.errors import CommlangError

if TYPE_CHECKING:
    from commlang.compare import Column, Failed
    from commlang.report.compare import Measured

_BACKENDS = ("gloo", "nccl", "mpi")


@click.command("compare")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--topology",
    "topologies",
    multiple=True,
    metavar="NAME|FILE",
    help="Simulate on this machine; may be repeated.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="[LABEL.]NAME=VALUE",
    help="Set a parameter of all patterns that have it, or of one.",
)
@click.option("--preset", metavar="NAME", help="Take parameters and the world from a preset.")
@click.option(
    "--world",
    "--nproc-per-node",
    "world",
    type=click.IntRange(1),
    metavar="N",
    help="How many ranks.",
)
@click.option(
    "--backend",
    type=click.Choice(_BACKENDS),
    help="Count bytes by the algorithms that this backend takes.",
)
@click.option("--measure", is_flag=True, help="Also run each pattern, on local ranks.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="How to print it.",
)
@click.option(
    "--max-events",
    type=size,
    metavar="N",
    default="50M",
    show_default=True,
    help="Refuse to expand a pattern to more events.",
)
def command(
    files: tuple[str, ...],
    topologies: tuple[str, ...],
    settings: tuple[str, ...],
    preset: str | None,
    world: int | None,
    backend: str | None,
    measure: bool,
    form: str,
    max_events: int,
) -> int:
    """Compare patterns side by side.

    FILE is a file, FILE:PATTERN, a name from the library, or LABEL=one of these.

    \b
      commlang compare ring_all_reduce tree_all_reduce --topology dgx-h100 --world 8
      commlang compare small=step.cl large=step.cl --set large.n=64Mi

    Patterns are compared as they are written, without the passes that `commlang run` applies. What
    is wrong with one of them is told apart, and the others are compared. Exit code 1 means that a
    pattern was refused or a run failed, 2 that something could not be read, or does not fit on a
    machine.
    """
    from commlang.cli.compare_run import measured_run
    from commlang.compare import Failed, chosen, column, subjects
    from commlang.report import compare as report
    from commlang.topology import load_machine

    machines = [load_machine(name) for name in topologies]
    found = subjects(files)
    choice = chosen(found, settings, preset, world)
    columns: list[Column | Failed] = []
    measured: dict[str, Measured] = {}
    for subject in found:
        try:
            program = choice.program(subject, max_events)
            judged = column(subject.label, program, machines, backend)
        except CommlangError as error:
            columns.append(Failed(subject.label, str(error), error.exit_code))
            continue
        columns.append(judged)
        if measure:
            need = judged.memory.mean * program.world
            measured[subject.label] = measured_run(subject.file, program, need, max_events)
    comparison = report.Comparison(
        tuple(columns), tuple(m.name for m in machines), measured if measure else None
    )
    for failed in comparison.failed:
        _say_failed(failed)
    if comparison.sound or form == "json":
        forms = {"text": report.render, "json": report.to_json, "markdown": report.render_markdown}
        click.echo(forms[form](comparison))
    return max((failed.code for failed in comparison.failed), default=0)


def _say_failed(failed: Failed) -> None:
    """A refused pattern is told as `error[CODE]: …` already, and a file mostly by its name."""
    told = failed.reason
    if not told.startswith(("error", "warning")):
        told = f"error: {told}" if told.startswith(failed.name) else f"error: {failed.name}: {told}"
    say(told)
