"""`commlang doctor`: what this machine offers to torch.distributed, and what to do about it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

from commlang.cli.lint import size
from commlang.errors import UsageError

if TYPE_CHECKING:
    from commlang.diagnostics import Diagnostic
    from commlang.doctor import Probe
    from commlang.resolve.modules import Definition
    from commlang.transports import Target


@click.command("doctor")
@click.argument("file", required=False)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--preset", metavar="NAME", help="Take parameters and the world from a preset.")
@click.option("--world", type=size, metavar="N", help="How many ranks the pattern is to run on.")
@click.option(
    "--max-events",
    type=size,
    metavar="N",
    default="50M",
    show_default=True,
    help="Refuse to expand a pattern to more events.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people or programs.",
)
def command(file: str | None, form: str, **given: Any) -> int:
    """Say what this machine offers to torch.distributed, and what could be better.

    With FILE, also what the pattern could do faster here (as `commlang lint --advice`): a file,
    FILE:PATTERN, a name from the library, or `-` for standard input.

    \b
      commlang doctor
      commlang doctor step.cl --world 8 --set n=64Mi
      torchrun --nproc-per-node 1 -m commlang doctor   with the variables that torchrun sets

    Advice is given about what was looked at; what holds of all machines is told apart. No rank is
    started and nothing is sent, but host names are looked up. Exit code 0 means that nothing is
    broken, 1 that something will fail, 2 that this could not run.
    """
    # numpy's OpenBLAS starts a thread per core on import, and nothing here multiplies matrices.
    variables = dict(os.environ)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if file is None and (given["settings"] or given["preset"] or given["world"]):
        raise UsageError("--set, --preset and --world are for a pattern; give its file")
    from commlang.doctor import advise
    from commlang.execute.machine import probe_machine
    from commlang.report.doctor import broken, doctor_json, render
    from commlang.verify import find_pattern

    definition = find_pattern(file) if file else None
    probe = probe_machine(variables)
    advice = advise(probe)
    findings = _findings(definition, probe, given) if definition else None
    if form == "json":
        click.echo(json.dumps(doctor_json(probe, advice, findings), indent=2))
    else:
        click.echo(render(probe, advice, findings))
    return int(broken(advice, findings))


def _findings(definition: Definition, probe: Probe, given: dict[str, Any]) -> list[Diagnostic]:
    """What is wrong with the pattern, and what could be faster, on ranks of such machines."""
    from commlang.checks import check_program
    from commlang.checks.selection import Selection
    from commlang.cli.prepare import parameter_settings
    from commlang.program import build
    from commlang.verify import default_world, preset_values

    values, world = parameter_settings(definition, given["settings"]), given["world"]
    if given["preset"]:
        world, preset = preset_values(definition, given["preset"], world)
        values = {**preset, **values}
    world = world or default_world(definition, values)
    program = build(definition, world, values, max_events=given["max_events"])
    found = check_program(program, _target(probe, world), Selection(ignore=()))
    return [f for f in found if f.severity == "error" or f.code.startswith("CL4")]


def _target(probe: Probe, world: int) -> Target:
    """NCCL on machines with as many GPUs as this one, if it has them; else gloo."""
    from commlang.transports import Backend, NcclInit, Target

    gpus = len(probe.devices)
    if not gpus:
        return Target(Backend.GLOO, device="cpu")
    nccl = probe.backends.get("nccl") is not None
    spread = gpus if world > gpus and world % gpus == 0 else None
    return Target(Backend.NCCL if nccl else Backend.GLOO, NcclInit.EAGER, "cuda", spread)
