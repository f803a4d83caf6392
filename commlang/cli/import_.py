"""`commlang import`: a pattern from a torch pipeline schedule."""

from __future__ import annotations

import click

from commlang.cli.guard import say
from commlang.cli.rewrite import create_file


@click.command("import")
@click.argument("path", type=click.Path(readable=False), metavar="FILE.csv")
@click.option(
    "--stages",
    metavar="loop|v|MAP",
    help="Which rank holds which stage; by default, the one whose row has it.",
)
@click.option("--lower", is_flag=True, help="Add sends and receives, as torch does on loading.")
@click.option(
    "--defer-recv", is_flag=True, help="Move receives down, as torch's defer_pp_recv=True does."
)
@click.option(
    "--blocking",
    is_flag=True,
    help="End each message before the next action, as one NCCL communicator does.",
)
@click.option("-o", "--output", metavar="FILE.cl", help="Write there, not to standard output.")
def command(
    path: str,
    stages: str | None,
    lower: bool,
    defer_recv: bool,
    blocking: bool,
    output: str | None,
) -> None:
    """Turn a pipeline schedule of torch into a pattern that can be checked and run.

    FILE.csv is what a schedule's `_dump_csv` writes: a line of actions such as 0F0 or 1SEND_F0
    for each rank. `-` reads standard input. Torch is not needed.

    \b
      commlang import zbv.csv -o zbv.cl          read a schedule with sends and receives
      commlang import zbv.csv --stages v         and be told if it is not laid out as a V
      commlang import order.csv --lower          from the order of computations alone

    MAP is STAGE=RANK for each stage: 0=0,1=1,2=1,3=0. A file that exists is never overwritten.
    """
    from commlang.convert import pattern_from_schedule, read_schedule

    schedule = read_schedule(path)
    made = pattern_from_schedule(schedule, stages, lower=lower, defer=defer_recv, blocking=blocking)
    for warning in made.warnings:
        say(f"warning: {warning}")
    if output is None:
        click.echo(made.text, nl=False)
        return
    create_file(output, made.text)
    say(f"wrote {output}; check it with `commlang lint {output}`")
