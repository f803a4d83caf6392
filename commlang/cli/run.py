"""`commlang run`: check a pattern, run it on real ranks, and verify its contracts on the data."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from commlang.cli.files import refuse_input
from commlang.cli.guard import say
from commlang.cli.lint import size
from commlang.cli.prepare import launch_options, prepared
from commlang.cli.start import started
from commlang.errors import CommlangError, UsageError

if TYPE_CHECKING:
    from commlang.execute.environment import RankInfo
    from commlang.execute.options import LaunchOptions
    from commlang.execute.rank import RankContext
    from commlang.execute.session import Outcome
    from commlang.execute.settings import Settings
    from commlang.plan import Plan
    from commlang.topology import Machine

_SAID_BY_THEN_S = 2.0


@click.command("run")
@click.argument("file")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--preset", metavar="NAME", help="Take parameters and the world from a preset.")
@click.option(
    "--extern",
    "externs",
    multiple=True,
    metavar="NAME=MODULE:FUNCTION",
    help="Call this Python function for an extern, instead of taking its cost's time.",
)
@click.option(
    "--backend",
    default="auto",
    show_default=True,
    help="gloo, nccl, mpi, or one for each device: cpu:gloo,cuda:nccl.",
)
@click.option("--device", default="auto", show_default=True, help="cpu, cuda or cuda:INDEX.")
@click.option(
    "--schedule",
    type=click.Choice(["overlap", "program"]),
    default="overlap",
    show_default=True,
    help="Start early, wait late, coalesce what is small, split what is large; or as written.",
)
@click.option("--verbose", "-v", is_flag=True, help="Say which passes were applied, and why not.")
@click.option("--allow-hazards", is_flag=True, help="Run even what may hang on NCCL.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="End the run, with a diagnosis, after so long without progress.",
)
@click.option("--iters", type=click.IntRange(0), default=5, show_default=True, help="Timed runs.")
@click.option(
    "--warmup",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Runs between the checked one and the timed ones.",
)
@click.option("--trace", metavar="FILE", help="Write the timed runs as a trace for Perfetto.")
@click.option("--predict", metavar="MACHINE", help="Simulate the run, too, and print both times.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the data.")
@click.option("--json", "as_json", is_flag=True, help="Print the report (or plan) as JSON.")
@click.option("--dry-run", is_flag=True, help="Check, print the plan, and start nothing.")
@click.option(
    "--max-events",
    type=size,
    metavar="N",
    default="50M",
    show_default=True,
    help="Refuse to expand a pattern to more events.",
)
@click.option("--nproc-per-node", type=click.IntRange(1), metavar="N", help="Ranks on this node.")
@click.option("--nnodes", default="1", show_default=True, metavar="N", help="Number of nodes.")
@click.option(
    "--node-rank", type=click.IntRange(0), default=0, metavar="N", help="This node, from 0."
)
@click.option("--master-addr", default="127.0.0.1", show_default=True, help="Host of node 0.")
@click.option(
    "--master-port", type=click.IntRange(1, 65535), default=29500, show_default=True, metavar="PORT"
)
@click.option("--rdzv-backend", default="", metavar="NAME", help="static or c10d.")
@click.option("--rdzv-endpoint", default="", metavar="HOST:PORT", help="Where nodes meet.")
@click.option("--rdzv-id", default="commlang", show_default=True, help="Name of the job.")
@click.option("--rdzv-conf", default="", metavar="KEY=VALUE,…", help="More for the rendezvous.")
@click.option("--local-addr", metavar="HOST", help="Address of this node.")
@click.option("--standalone", is_flag=True, help="One node, whatever --rdzv-… say.")
@click.option(
    "--start-method",
    type=click.Choice(["auto", "fork", "spawn"]),
    default="auto",
    show_default=True,
    help="How local ranks start; auto forks where that is safe.",
)
def command(file: str, **given: Any) -> int:
    """Run a pattern on real ranks, and verify its contracts on the data.

    FILE is a file, FILE:PATTERN, a name from the library, or `-` for standard input.

    \b
      commlang run ring_all_reduce
      commlang run step.cl --nproc-per-node 8 --set n=64Mi
      torchrun --nproc-per-node 4 -m commlang run step.cl

    Started alone, it starts local ranks, as torchrun would. Under torchrun, srun or mpirun it runs
    on the ranks that are there. Exit code 1 means that the pattern was refused, a contract does not
    hold or a rank failed; 2 that the run could not start.
    """
    # numpy's OpenBLAS starts a thread per core on import, and nothing here multiplies matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from commlang.execute.environment import detect

    # Ranks of MPI find one another by MPI.
    info = detect(os.environ, need_master="mpi" not in given["backend"])
    if info and info.world_size > 1 and file == "-":
        raise UsageError("ranks cannot share standard input; put the pattern into a file")
    options = None if info else launch_options(given)
    try:
        if given["trace"] is not None:
            _check_trace(file, info, options, given)
        if given["predict"] is not None:
            _refuse_untimed("--predict", given, "compare")
        plan, settings = prepared(file, info, options, given)
        if settings.predict is not None:
            _machine(plan, settings.predict)
    except CommlangError:
        if info and info.local_rank:
            # All ranks find the same; the first of this node says so, and the rest end with it.
            time.sleep(_SAID_BY_THEN_S)
        raise
    if given["dry_run"]:
        if info is None or info.rank == 0:
            _print_plan(plan, given["as_json"])
        return 0
    extra = (plan, settings, given["as_json"])
    if options is not None:
        held, report = _launch(replace(options, nproc_per_node=plan.world // options.nodes), *extra)
    else:
        from commlang.execute.rank import run_rank

        assert info is not None
        held, report = run_rank(rank_main, extra, info, timeout=settings.timeout)
    if report:
        click.echo(report)
    return 0 if held else 1


def rank_main(
    context: RankContext, plan: Plan, settings: Settings, as_json: bool
) -> tuple[bool, str]:
    """What every rank does. Returns whether all contracts held and, from rank 0, the report."""
    from commlang.execute.session import run_session

    outcome = run_session(context, plan, settings)
    if context.info.rank != 0:
        return outcome.ok, ""
    written = settings.trace is None or _write_trace(plan, outcome, settings)
    from commlang.report.run import make_report
    from commlang.report.text import render

    report = make_report(plan, outcome, settings)
    if settings.predict is not None:
        from commlang.report.predict import predict

        machine = _machine(plan, settings.predict)
        report.prediction = predict(plan, machine, report.statements, report.totals.median)
    text = report.model_dump_json(indent=2) if as_json else render(report)
    return outcome.ok and written, text


def _check_trace(
    file: str, info: RankInfo | None, options: LaunchOptions | None, given: dict[str, Any]
) -> None:
    """Refuse a trace that could not be written, where rank 0 will be."""
    _refuse_untimed("--trace", given, "trace")
    refuse_input("--trace", given["trace"], pattern=file, machine=given["predict"])
    elsewhere = bool(info and info.rank and info.spans_nodes) or bool(options and options.node_rank)
    if not elsewhere:
        from commlang.trace.write import check_path

        check_path(given["trace"])


def _refuse_untimed(option: str, given: dict[str, Any], what: str) -> None:
    if given["dry_run"] or not given["iters"]:
        why = "with --dry-run nothing runs" if given["dry_run"] else "--iters 0 times no run"
        value = given[option.removeprefix("--")]
        raise UsageError(f"{option} {value}: {why}, so there is nothing to {what}")


def _machine(plan: Plan, name: str) -> Machine:
    """The machine of a prediction; raises UsageError if it is none, or too small."""
    from commlang.topology import load_machine

    return load_machine(name).for_world(plan.world)


def _write_trace(plan: Plan, outcome: Outcome, settings: Settings) -> bool:
    """Write the trace; a disk that is full by now takes nothing from the report."""
    from commlang.execute.align import METHOD
    from commlang.trace import RankTrace, write_trace

    assert settings.trace is not None
    ranks = [
        RankTrace(r.rank, r.host, r.times.marks, r.clock)
        for r in outcome.ranks
        if r.clock is not None and r.times.marks is not None
    ]
    facts = {"torch": outcome.torch, "backend": outcome.backend, "device": outcome.device}
    try:
        write_trace(
            settings.trace, plan, ranks, {**facts, "clock_method": METHOD}, settings.iterations
        )
    except OSError as error:
        say(f"error: cannot write {settings.trace}: {error.strerror or error}")
        return False
    return True


def _launch(
    options: LaunchOptions, plan: Plan, settings: Settings, as_json: bool
) -> tuple[bool, str]:
    from commlang.execute.story import Story

    modules = ("commlang.execute.session", "commlang.report.text")
    extra = (plan, settings, as_json)
    results = started(rank_main, extra, options, settings, Story(plan).narrator, modules)
    return all(held for held, _ in results), results[0][1]


def _print_plan(plan: Plan, as_json: bool) -> None:
    if as_json:
        click.echo(plan.to_json())
        return
    from commlang.report.plan import render_plan

    click.echo(render_plan(plan))
