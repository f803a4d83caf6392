"""`commlang run`: check a pattern, run it on real ranks, and verify its contracts on the data."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from commlang.cli.guard import DEBUG, say
from commlang.cli.lint import size
from commlang.diagnostics import did_you_mean
from commlang.errors import CommlangError, PatternError, UsageError

if TYPE_CHECKING:
    from commlang.execute.environment import RankInfo
    from commlang.execute.options import LaunchOptions
    from commlang.execute.rank import RankContext
    from commlang.execute.report import RunFailed
    from commlang.execute.settings import Settings
    from commlang.plan import Plan
    from commlang.resolve.modules import Definition


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
    from commlang.verify import find_pattern

    info = detect(os.environ)
    if info and info.world_size > 1 and file == "-":
        raise UsageError("ranks cannot share standard input; put the pattern into a file")
    options = None if info else _launch_options(given)
    definition = find_pattern(file)
    settings = _settings(given, definition)
    plan = _plan(definition, info, options, given)
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
    from commlang.report.run import make_report, render

    report = make_report(plan, outcome, settings)
    return outcome.ok, report.model_dump_json(indent=2) if as_json else render(report)


def _launch(
    options: LaunchOptions, plan: Plan, settings: Settings, as_json: bool
) -> tuple[bool, str]:
    from commlang.execute.launch import launch
    from commlang.execute.report import RunFailed
    from commlang.execute.story import Story

    ranks = options.nproc_per_node
    cuda = settings.may_use_cuda(ranks)
    if cuda:
        # Such ranks are spawned, so that torch may be imported here, to say at once what is missing.
        from commlang.execute.session import check_devices

        check_devices(settings, ranks)
    try:
        results = launch(
            rank_main,
            (plan, settings, as_json),
            options,
            narrator=Story(plan).narrator,
            timeout=settings.timeout,
            cuda=cuda,
            preload=("commlang.execute.session", "commlang.report.run"),
        )
    except RunFailed as error:
        raise _plainly(error) from None
    return all(held for held, _ in results), results[0][1]


def _plainly(error: RunFailed) -> CommlangError:
    """The error of a failed run, without its ranks where the user's mistake is no rank's."""
    causes = [report for report in error.reports if report.rank in error.causes]
    if os.environ.get(DEBUG):
        for report in causes:
            say(report.traceback)
    if causes and all(report.known_code == UsageError.exit_code for report in causes):
        return UsageError(causes[0].message)
    if causes and all(report.message.startswith("error[") for report in causes):
        return CommlangError(causes[0].message)
    return error


def _plan(
    definition: Definition,
    info: RankInfo | None,
    options: LaunchOptions | None,
    given: dict[str, Any],
) -> Plan:
    """Check the pattern for its world and plan it; the world is that of the ranks that are there."""
    from commlang.checks import check_program
    from commlang.program import build
    from commlang.verify import default_world, parse_settings, preset_values

    values = parse_settings(given["settings"])
    world = info.world_size if info else None
    if options is not None and given["nproc_per_node"]:
        world = given["nproc_per_node"] * options.nodes
    if given["preset"]:
        world, preset = preset_values(definition, given["preset"], world)
        values = {**preset, **values}
    if world is None:
        world = default_world(definition, values)
    if options is not None and world % options.nodes:
        raise UsageError(
            f"{world} ranks do not spread evenly over {options.nodes} nodes; give --nproc-per-node"
        )
    program = build(definition, world, values, max_events=given["max_events"])
    if found := check_program(program):
        raise PatternError(found)
    # Its pydantic would cost a refused pattern a fifth of the time.
    from commlang.plan import plan_of

    return plan_of(program, given["max_events"])


def _launch_options(given: dict[str, Any]) -> LaunchOptions:
    from commlang.execute.options import LaunchOptions

    names = ("nnodes", "node_rank", "master_addr", "master_port", "standalone", "start_method")
    more = ("rdzv_backend", "rdzv_endpoint", "rdzv_id", "local_addr")
    conf = [part.partition("=") for part in given["rdzv_conf"].split(",") if part.strip()]
    for key, equals, _ in conf:
        if not equals or not key.strip():
            raise UsageError(f"--rdzv-conf {given['rdzv_conf']}: write KEY=VALUE,KEY=VALUE")
    options = LaunchOptions(
        nproc_per_node=given["nproc_per_node"] or 1,
        rdzv_conf={key.strip(): value.strip() for key, _, value in conf},
        **{name: given[name] for name in (*names, *more)},
    )
    return options.checked()


def _settings(given: dict[str, Any], definition: Definition) -> Settings:
    from commlang.execute.settings import Settings

    return Settings(
        backend=given["backend"],
        device=given["device"],
        timeout=given["timeout"],
        iterations=given["iters"],
        warmup=given["warmup"],
        seed=given["seed"],
        externs=tuple(_externs(given["externs"], definition).items()),
    )


def _externs(texts: tuple[str, ...], definition: Definition) -> dict[str, str]:
    """Python functions by the names of the externs that they stand for."""
    from importlib.util import find_spec

    known = _known_externs(definition)
    found: dict[str, str] = {}
    for text in texts:
        name, _, target = text.partition("=")
        module, _, function = target.partition(":")
        if not all(part.isidentifier() for part in (name, function, *module.split("."))):
            hint = "write NAME=MODULE:FUNCTION, as in `--extern forward=my_model:forward`"
            raise UsageError(f"--extern {text}: {hint}")
        if name not in known:
            hint = did_you_mean(name, known) or f"it has {', '.join(known) or 'none'}"
            raise UsageError(
                f"--extern {text}: `{definition.node.name}` has no extern `{name}`; {hint}"
            )
        if name in found:
            raise UsageError(f"--extern {text}: `{name}` is given twice")
        # An installed command does not look into the working directory, where they mostly are.
        if "" not in sys.path:
            sys.path.insert(0, "")
        if find_spec(module.partition(".")[0]) is None:
            raise UsageError(f"--extern {text}: there is no Python module `{module}` here")
        found[name] = target
    return found


def _known_externs(definition: Definition) -> list[str]:
    from commlang.syntax import ast

    symbols = [item for m in definition.module.reachable() for item in m.symbols.items()]
    return list(dict.fromkeys(name for name, s in symbols if isinstance(s.node, ast.Extern)))


def _print_plan(plan: Plan, as_json: bool) -> None:
    if as_json:
        click.echo(plan.to_json())
        return
    from commlang.report.plan import render_plan

    click.echo(render_plan(plan))
