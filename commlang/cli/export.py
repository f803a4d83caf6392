"""`commlang export`: a checked pattern as a script that needs torch only."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

import click

from commlang.cli.guard import say
from commlang.cli.lint import size
from commlang.cli.prepare import check_and_say, parameter_settings
from commlang.cli.rewrite import create_file

if TYPE_CHECKING:
    from commlang.program import Program


@click.command("export")
@click.argument("file")
@click.option(
    "--to",
    type=click.Choice(["python"]),
    default="python",
    show_default=True,
    help="What to write.",
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--preset", metavar="NAME", help="Take parameters and the world from a preset.")
@click.option(
    "--world",
    "--nproc-per-node",
    "world",
    type=click.IntRange(1),
    metavar="N",
    help="How many ranks the script is for.",
)
@click.option("-o", "--output", metavar="FILE.py", help="Write there, not to standard output.")
@click.option(
    "--max-events",
    type=size,
    metavar="N",
    default="50M",
    show_default=True,
    help="Refuse to expand a pattern to more events.",
)
def command(
    file: str,
    to: str,
    settings: tuple[str, ...],
    preset: str | None,
    world: int | None,
    output: str | None,
    max_events: int,
) -> None:
    """Write a pattern as a torch.distributed script that does without commlang.

    FILE is a file, FILE:PATTERN, a name from the library, or `-` for standard input.

    \b
      commlang export ring_all_reduce --world 4 -o ring.py
      torchrun --nproc-per-node 4 ring.py

    The script is for the given parameters and number of ranks, for which the pattern is checked
    first; its function can be imported and called on any tensors of these shapes. A file that
    exists is never overwritten. Exit code 1 means that the pattern was refused, 2 that there is no
    way to write the script.
    """
    del to  # there is one so far
    from commlang.export import export_python
    from commlang.transports import PORTABLE

    program = _program(file, settings, preset, world, max_events)
    check_and_say(program, PORTABLE, allow_hazards=True, quiet=False)
    name = PurePath(output).name if output else "script.py"
    text = export_python(program, command=name, max_events=max_events, checked=True)
    if output is None:
        click.echo(text, nl=False)
        return
    create_file(output, text)
    say(f"wrote {output}; run it with `torchrun --nproc-per-node {program.world} {output}`")


def _program(
    file: str, settings: tuple[str, ...], preset: str | None, world: int | None, max_events: int
) -> Program:
    from commlang.program import build
    from commlang.verify import default_world, find_pattern, preset_values

    definition = find_pattern(file)
    values = parameter_settings(definition, settings)
    if preset:
        world, found = preset_values(definition, preset, world)
        values = {**found, **values}
    if world is None:
        world = default_world(definition, values)
    return build(definition, world, values, max_events=max_events)
