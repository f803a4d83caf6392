"""`commlang explain`: why a job hangs, from the Flight Recorder dumps of its ranks."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commlang.cli.files import SUFFIX
from commlang.errors import UsageError

if TYPE_CHECKING:
    from commlang.program import Program


@click.command("explain")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(readable=False), metavar="DUMPS... [FILE.cl]"
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--preset", metavar="NAME", help="Take parameters and the world from a preset.")
@click.option(
    "--world", type=click.IntRange(1, 1 << 20), metavar="N", help="How many ranks the job has."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def command(paths: tuple[str, ...], as_json: bool, **given: Any) -> int:
    """Say why a job hangs, from the Flight Recorder dumps of its ranks.

    DUMPS are files, or a folder of them, whose names end in their ranks: what torch writes when an
    operation of NCCL times out, or what `torch._C._distributed_c10d._dump_fr_trace()` returns, also
    as JSON. Torch is not needed, and nothing in a dump is run.

    \b
      commlang explain /tmp/nccl_trace_rank_*      who is missing, and who waits for whom
      commlang explain dumps step.cl --set n=1Mi   the same in the lines of the pattern that ran

    Exit code 0 means that nothing is wrong in them, 1 that something is, 2 that they could not be
    read.
    """
    from commlang.explain import explain
    from commlang.report.explain import explain_json, render

    patterns = [path for path in paths if _is_pattern(path)]
    dumps = [path for path in paths if path not in patterns]
    if len(patterns) > 1:
        raise UsageError(f"{patterns[0]} and {patterns[1]}: give one pattern, the one that ran")
    if not dumps:
        raise UsageError("give the dumps too: files, or a folder of them")
    if not patterns and (given["settings"] or given["preset"]):
        raise UsageError("--set and --preset are for a pattern; give its file after the dumps")
    expand = partial(_program, patterns[0], given) if patterns else None
    found = explain(dumps, expand, given["world"])
    click.echo(json.dumps(explain_json(found), indent=2) if as_json else render(found))
    return 1 if found.findings else 0


def _is_pattern(path: str) -> bool:
    """Whether it is FILE.cl, FILE.cl:PATTERN or the name of a pattern of the library."""
    known = path.isidentifier() and not path[-1].isdigit() and not Path(path).exists()
    return known or path.endswith(SUFFIX) or f"{SUFFIX}:" in path


def _program(file: str, given: dict[str, Any], world: int) -> Program:
    """The pattern expanded for the job's world, be it sound or not."""
    from commlang.program import build
    from commlang.verify import find_pattern, parse_settings, preset_values

    definition = find_pattern(file)
    values = parse_settings(given["settings"])
    if given["preset"]:
        own, preset = preset_values(definition, given["preset"], given["world"])
        world, values = own or world, {**preset, **values}
    return build(definition, world, values)
