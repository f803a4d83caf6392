"""`commlang simulate`: when everything happens on a machine, and what keeps it from less."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from commlang.cli.lint import size
from commlang.cli.prepare import check_and_say, parameter_settings

if TYPE_CHECKING:
    from commlang.program import Program
    from commlang.simulate import Simulation
    from commlang.topology import Machine
    from commlang.transports import Target


@click.command("simulate")
@click.argument("file")
@click.option(
    "-t",
    "--topology",
    required=True,
    metavar="MACHINE",
    help="A machine that commlang topology lists, or a file.",
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--preset", metavar="NAME", help="Take parameters and the world from a preset.")
@click.option(
    "--world",
    "--nproc-per-node",
    "world",
    type=click.IntRange(1),
    metavar="N",
    help="How many ranks; rank r runs on device r.",
)
@click.option(
    "--backend",
    type=click.Choice(["rendezvous", "gloo", "nccl", "mpi"]),
    help="Check it for this backend first; without, for all.",
)
@click.option("--allow-hazards", is_flag=True, help="Simulate even what may hang on NCCL.")
@click.option(
    "--schedule",
    type=click.Choice(["overlap", "program"]),
    default="overlap",
    show_default=True,
    help="As commlang run orders it, or as written.",
)
@click.option(
    "--contention/--no-contention",
    default=True,
    help="Whether messages and collectives queue for the links that they share.",
)
@click.option(
    "--cost", "costs", multiple=True, metavar="NAME=TIME", help="Of an extern or a label."
)
@click.option(
    "--straggler",
    "stragglers",
    multiple=True,
    metavar="rank=R:Fx",
    help="Rank R is F times slower.",
)
@click.option("--jitter", default="0", metavar="PART", help="Vary all times, as by 10%.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the jitter.")
@click.option(
    "--algorithm",
    "algorithms",
    multiple=True,
    metavar="OP=NAME",
    help="As all_reduce=ring; without, the fastest is taken.",
)
@click.option("--eager", type=size, metavar="N", help="Messages so small do not wait for a recv.")
@click.option(
    "--sweep", "sweeps", multiple=True, metavar="NAME=VALUES", help="n=1Mi..1Gi, world=4..64, …"
)
@click.option("--plot", metavar="FILE.svg", help="Draw the times of a sweep.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print the result.",
)
@click.option(
    "--max-events",
    type=size,
    metavar="N",
    default="50M",
    show_default=True,
    help="Refuse to expand a pattern to more events.",
)
def command(file: str, sweeps: tuple[str, ...], plot: str | None, **given: Any) -> None:
    """Predict how long a pattern takes on a machine, and say what it waits for.

    FILE is a file, FILE:PATTERN, a name from the library, or `-` for standard input.

    \b
      commlang simulate ring_all_reduce --topology dgx-h100 --world 8
      commlang simulate step.cl -t dgx-h100-rails --world 64 --straggler rank=3:1.5x
      commlang simulate all_reduce -t dgx-h100 --sweep n=1Ki..1Gi --sweep world=2..8

    Nothing runs: the pattern is checked, then its events are timed by LogGP. Exit code 1 means that
    the pattern was refused, 2 that there was nothing to simulate.
    """
    from commlang.errors import UsageError

    if plot and not sweeps:
        raise UsageError("--plot draws a sweep; give one, as `--sweep n=1Ki..1Gi`")
    if sweeps:
        from commlang.cli.sweep import run_sweep

        click.echo(run_sweep(file, sweeps, plot, given), nl=False)
        return
    simulation, passes = simulated(file, given, quiet=False)
    click.echo(_told(simulation, given, passes))


def _told(simulation: Simulation, given: dict[str, Any], passes: tuple[str, ...]) -> str:
    from commlang.report.simulate import make_report, render

    report = make_report(simulation, contention=given["contention"], passes=passes)
    if given["form"] == "json":
        return report.model_dump_json(indent=2)
    return render(report)


def simulated(
    file: str, given: dict[str, Any], *, quiet: bool
) -> tuple[Simulation, tuple[str, ...]]:
    """Check, schedule and simulate a pattern; returns also the passes that were applied."""
    from commlang.schedule import schedule
    from commlang.simulate import simulate
    from commlang.simulate.read import algorithms_of, costs_of, part_of, stragglers_of
    from commlang.topology import load_machine

    options: dict[str, Any] = {
        "costs": costs_of(given["costs"]),
        "stragglers": stragglers_of(given["stragglers"]),
        "algorithms": algorithms_of(given["algorithms"]),
        "jitter": part_of(given["jitter"]),
        "seed": given["seed"],
        "eager": given["eager"] or 0,
        "contention": given["contention"],
    }
    machine: Machine = load_machine(given["topology"])
    program, target = _program(file, given), _target(given["backend"])
    check_and_say(program, target, given["allow_hazards"], quiet=quiet)
    scheduled = schedule(program, target, given["schedule"])
    options["buckets"] = scheduled.buckets
    return simulate(scheduled.program, machine, **options), scheduled.passes


def _target(backend: str | None) -> Target:
    from commlang.transports import PORTABLE, Backend, Target

    return Target(Backend(backend)) if backend else PORTABLE


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
