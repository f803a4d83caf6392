"""`commlang bench`: patterns over a range of sizes, timed in the manner of nccl-tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commlang.cli.files import refuse_input
from commlang.cli.lint import size
from commlang.cli.start import started
from commlang.errors import CommlangError, UsageError
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.api import Pattern
    from commlang.execute.bench import Bench
    from commlang.execute.rank import RankContext
    from commlang.execute.settings import BenchSettings
    from commlang.plan import Plan
    from commlang.report.bench import Row

OPERATIONS = (
    *("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce"),
    *("gather", "scatter"),
)
VARIABLES = ("OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME", "CUDA_VISIBLE_DEVICES")


@record
class Job:
    """A pattern at one size: `bytes` and `count` are of its largest tensor."""

    name: str
    plan: Plan
    dtype: str
    bytes: int
    count: int
    in_place: bool


@click.command("bench")
@click.argument("file")
@click.option("--vs", multiple=True, metavar="FILE", help="Measure this pattern too, in turn.")
@click.option("-b", "--minbytes", type=size, default="1Ki", show_default=True, metavar="N")
@click.option("-e", "--maxbytes", type=size, default="1Mi", show_default=True, metavar="N")
@click.option("-f", "--stepfactor", type=click.IntRange(2), default=4, show_default=True)
@click.option("-i", "--stepbytes", type=size, metavar="N", help="Steps of so many bytes instead.")
@click.option("-n", "--iters", type=click.IntRange(1), default=20, show_default=True)
@click.option(
    "-w", "--warmup_iters", "warmup", type=click.IntRange(0), default=5, show_default=True
)
@click.option(
    "-m", "--agg_iters", "aggregate", type=click.IntRange(1), default=1, show_default=True
)
@click.option("-N", "--run_cycles", "cycles", type=click.IntRange(1), default=1, show_default=True)
@click.option("-c", "--check", type=click.IntRange(0), default=1, show_default=True)
@click.option("-d", "--datatype", metavar="DTYPE", help="For patterns with a parameter `dtype`.")
@click.option("-o", "--op", metavar="OP", help="For patterns with a parameter `op`.")
@click.option("-r", "--root", type=click.IntRange(0), help="For patterns with a parameter `root`.")
@click.option("-J", "--output_file", "json_file", metavar="FILE", help="Write JSON too.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--size-parameter", default="n", show_default=True, metavar="NAME")
@click.option(
    "--collective",
    type=click.Choice(OPERATIONS),
    help="What the patterns do, for busbw; else their names tell.",
)
@click.option("--schedule", type=click.Choice(["overlap", "program"]), default="overlap")
@click.option("--backend", default="auto", show_default=True)
@click.option("--device", default="auto", show_default=True)
@click.option("--nproc-per-node", type=click.IntRange(1), default=4, show_default=True)
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=60.0)
def command(file: str, **given: Any) -> int:
    """Time a pattern over a range of sizes, on local ranks or those of torchrun.

    \b
      commlang bench ring_all_reduce -b 1Ki -e 4Mi
      commlang bench ring_all_reduce --vs all_reduce --vs tree_all_reduce --nproc-per-node 8

    Options, columns and bandwidths are those of nccl-tests. The size is that of the pattern's
    largest tensor; `count` its elements. `#wrong` counts elements that break a contract. Exit code
    1 means that some did, or that a pattern was refused.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from commlang.execute.environment import detect

    # Ranks of MPI find one another by MPI.
    info = detect(os.environ, need_master="mpi" not in given["backend"])
    world = info.world_size if info else given["nproc_per_node"]
    files = [file, *given["vs"]]
    for name in files:
        refuse_input("-J", given["json_file"], pattern=name)
    plans = [job for name in files for job in _jobs(name, world, given)]
    settings = _settings(given)
    if info is None:
        held, report = _launch(plans, settings, world, given)
    else:
        from commlang.execute.rank import run_rank

        extra = (plans, settings, given)
        held, report = run_rank(rank_main, extra, info, timeout=settings.timeout)
    if report:
        click.echo(report)
    return 0 if held else 1


def rank_main(
    context: RankContext,
    plans: Sequence[Job],
    settings: BenchSettings,
    given: dict[str, Any],
) -> tuple[bool, str]:
    """What every rank does. Returns from rank 0 whether all was right, and the tables."""
    from commlang.execute.bench import bench

    found = bench(context, [job.plan for job in plans], settings)
    if context.info.rank != 0:
        return True, ""
    rows = [_row(job, found, at, given) for at, job in enumerate(plans)]
    report = _report(rows, found, context.info.world_size, given)
    return not any(row.wrong for row in rows), report


def _launch(
    plans: list[Job], settings: BenchSettings, world: int, given: dict[str, Any]
) -> tuple[bool, str]:
    from commlang.execute.diagnosis import Narrator
    from commlang.execute.options import LaunchOptions

    def at(rank: int, position: int) -> str:
        job = plans[(position >> 32) - 1]
        return f"`{job.name}` on {job.bytes} bytes"

    modules = ("commlang.execute.bench", "commlang.report.bench")
    extra, options = (plans, settings, given), LaunchOptions(nproc_per_node=world)
    return started(rank_main, extra, options, settings, Narrator(at), modules)[0]


def _settings(given: dict[str, Any]) -> BenchSettings:
    from commlang.execute.settings import BenchSettings

    names = ("backend", "device", "warmup", "check", "cycles", "aggregate", "timeout")
    return BenchSettings(iterations=given["iters"], **{name: given[name] for name in names})


def _jobs(file: str, world: int, given: dict[str, Any]) -> list[Job]:
    """A plan for each size; sizes that come to the same number of elements are one."""
    from commlang.api import load

    pattern = load(file)
    values = _values(pattern, given)
    name = given["size_parameter"]
    if name not in pattern.parameters:
        have = ", ".join(pattern.parameters) or "none"
        raise UsageError(f"`{file}` has no parameter `{name}` for its size; it has {have}")

    backend = given["backend"] if given["backend"] in ("nccl", "mpi") else None

    def job(number: int) -> Job:
        chosen: dict[str, Any] = {**values, name: number}
        plan = pattern.plan(
            world, schedule=given["schedule"], backend=backend, nccl_init="eager", **chosen
        )
        dtype, size, count = _largest(plan)
        return Job(file, plan, dtype, size, count, len(pattern.tensors) == 1)

    per = job(world).bytes / world
    numbers: dict[int, None] = {}
    for wanted in _sizes(given):
        numbers.setdefault(max(int(wanted / per) // world, 1) * world)
    return [job(number) for number in numbers]


def _sizes(given: dict[str, Any]) -> list[int]:
    least, most, step = given["minbytes"], given["maxbytes"], given["stepbytes"]
    if most < least:
        raise UsageError(f"--maxbytes {most} is less than --minbytes {least}")
    found = [least]
    while (following := found[-1] + step if step else found[-1] * given["stepfactor"]) <= most:
        found.append(following)
        if len(found) > 1000:
            raise UsageError("more than 1,000 sizes; take a larger step")
    return found


def _values(pattern: Pattern, given: dict[str, Any]) -> dict[str, Any]:
    from commlang.verify import parse_settings

    values = dict(parse_settings(given["settings"]))
    asked = {"dtype": given["datatype"], "op": given["op"], "root": given["root"]}
    values |= {name: value for name, value in asked.items() if value is not None}
    return {name: value for name, value in values.items() if name in pattern.parameters}


def _largest(plan: Plan) -> tuple[str, int, int]:
    from commlang.tuning.candidates import largest_tensor

    found = largest_tensor(plan.program())
    if found is None:
        raise UsageError(f"`{plan.pattern}` has no tensors to measure")
    return found


def _row(job: Job, found: Bench, at: int, given: dict[str, Any]) -> Row:
    from commlang.report.bench import Row, spread

    cycles = given["cycles"]
    samples = [s for entry in found.samples[at * cycles : (at + 1) * cycles] for s in entry]
    time, percentiles = spread(samples)
    wrongs = [s.wrong for s in samples if s.wrong is not None]
    return Row(
        name=job.name,
        size=job.bytes,
        count=job.count,
        type=job.dtype,
        redop=str(job.plan.parameters.get("op", "none")),
        root=int(job.plan.parameters.get("root", -1)),
        ranks=job.plan.world,
        operation=given["collective"] or _operation(job.name),
        in_place=job.in_place,
        time=time,
        percentiles=percentiles,
        wrong=sum(wrongs) if wrongs else None,
        runs=len(samples[0].seconds) * given["aggregate"],
    )


def _operation(name: str) -> str:
    """The collective that a pattern's name ends in, as in `ring_all_reduce`, else its name."""
    stem = Path(name.partition(":")[2] or name).stem
    return next((operation for operation in OPERATIONS if operation in stem), stem)


def _report(rows: list[Row], found: Bench, world: int, given: dict[str, Any]) -> str:
    """The tables; JSON goes into its file."""
    from commlang.report.bench import as_json, footer, header, line

    facts = _facts(found, world, given)
    parts: list[str] = []
    for number, name in enumerate(dict.fromkeys(row.name for row in rows)):
        mine = [row for row in rows if row.name == name]
        parts.append(header([f"commlang bench: {name}", *facts] if not number else [name]))
        parts += [*map(line, mine), footer(mine)]
    if given["json_file"]:
        import json

        config = {
            "minimum_bytes": given["minbytes"],
            "maximum_bytes": given["maxbytes"],
            "step_factor": None if given["stepbytes"] else given["stepfactor"],
            "step_bytes": given["stepbytes"],
            "warmup_iterations": given["warmup"],
            "iterations": given["iters"],
            "aggregated_iterations": given["aggregate"],
            "validation": given["check"],
        }
        text = json.dumps(as_json(rows, config, facts), indent=2)
        try:
            Path(given["json_file"]).write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise CommlangError(f"cannot write {given['json_file']}: {error.strerror}") from None
    return "\n".join(parts)


def _facts(found: Bench, world: int, given: dict[str, Any]) -> list[str]:
    import platform

    from commlang.version import __version__

    said = [f"{name}={os.environ[name]}" for name in VARIABLES if name in os.environ]
    return [
        f"commlang {__version__}, torch {found.torch}, Python {platform.python_version()}",
        f"{world} ranks on {found.backend}, {found.device}; host {platform.node()}, "
        f"{os.cpu_count()} CPUs, {platform.machine()}",
        f"warmup iters: {given['warmup']} iters: {given['iters']} agg iters: {given['aggregate']} "
        f"run cycles: {given['cycles']} validation: {given['check']} schedule: {given['schedule']}",
        *([" ".join(said)] if said else []),
    ]
