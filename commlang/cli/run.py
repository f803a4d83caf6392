"""`commlang run`: check a pattern, run it on real ranks, and verify its contracts on the data."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from commlang.errors import UsageError

if TYPE_CHECKING:
    from commlang.execute.environment import RankInfo
    from commlang.execute.options import LaunchOptions
    from commlang.execute.rank import RankContext
    from commlang.execute.settings import Settings
    from commlang.plan import Plan


def _both(name: str) -> list[str]:
    """torchrun's two spellings of an option, with `-` and with `_`."""
    return list(dict.fromkeys([f"--{name}", f"--{name.replace('-', '_')}"]))


@click.command("run")
@click.argument("file")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--preset", help="Take parameters (and the world) from a preset of the pattern.")
@click.option(
    "--backend", default="auto", show_default=True, help="gloo, nccl, mpi, or cpu:gloo,cuda:nccl."
)
@click.option("--device", default="auto", show_default=True, help="cpu, cuda or cuda:INDEX.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Seconds without progress after which the run ends with a diagnosis.",
)
@click.option("--iters", type=click.IntRange(0), default=5, show_default=True, help="Timed runs.")
@click.option("--warmup", type=click.IntRange(0), default=1, show_default=True, help="Runs before.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the data.")
@click.option("--extern", "externs", multiple=True, metavar="NAME=MODULE:FUNCTION")
@click.option("--max-events", type=click.IntRange(1), help="Bound on the expanded events.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--dry-run", is_flag=True, help="Check and print the plan; start nothing.")
@click.option(*_both("nproc-per-node"), type=click.IntRange(1), help="Ranks on this node.")
@click.option(*_both("nnodes"), default="1", show_default=True, help="Number of nodes.")
@click.option(*_both("node-rank"), type=click.IntRange(0), default=0, show_default=True)
@click.option(*_both("rdzv-backend"), default="", help="static or c10d.")
@click.option(*_both("rdzv-endpoint"), default="", metavar="HOST:PORT")
@click.option(*_both("rdzv-id"), default="commlang", show_default=True)
@click.option(*_both("rdzv-conf"), default="", metavar="KEY=VALUE,…")
@click.option(*_both("master-addr"), default="127.0.0.1", show_default=True)
@click.option(*_both("master-port"), type=int, default=29500, show_default=True)
@click.option(*_both("local-addr"), default=None, help="Address of this node.")
@click.option("--standalone", is_flag=True, help="One node, as with torchrun.")
@click.option(
    *_both("start-method"), type=click.Choice(["auto", "fork", "spawn"]), default="auto"
)
def command(file: str, **given: Any) -> None:
    """Run the pattern of FILE (or FILE:PATTERN, or a name from the library) on real ranks.

    \b
    commlang run ring_all_reduce
    commlang run pattern.cl --nproc-per-node 8 --set n=64Mi
    torchrun --nproc-per-node 4 -m commlang run pattern.cl

    Started alone, it launches local ranks; under torchrun, srun or mpirun it uses the ranks that
    are there. It ends with exit code 1 if the pattern is refused, a contract fails or a rank does.
    """
    from commlang.execute.environment import detect

    info = detect(os.environ)
    options = None if info else _launch_options(given)
    plan = _plan(file, info, options, given)
    if given["dry_run"]:
        if info is None or info.rank == 0:
            _print_plan(plan, given["as_json"])
        return
    settings = _settings(given)
    extra = (plan, settings, given["as_json"])
    if info is not None:
        from commlang.execute.rank import run_rank

        ok = run_rank(rank_main, extra, info, timeout=settings.timeout)
    else:
        ok = _launch(plan, settings, given, options, extra)
    if not ok:
        sys.exit(1)


def _launch(
    plan: Plan,
    settings: Settings,
    given: dict[str, Any],
    options: LaunchOptions | None,
    extra: tuple[Any, ...],
) -> bool:
    from dataclasses import replace

    from commlang.execute.launch import launch
    from commlang.execute.story import Story

    assert options is not None
    options = replace(options, nproc_per_node=plan.world // options.nodes)
    cuda = settings.device.startswith("cuda") or "nccl" in settings.backend
    results = launch(
        rank_main, extra, options, narrator=Story(plan).narrator, timeout=settings.timeout, cuda=cuda
    )
    return all(results)


def rank_main(context: RankContext, plan: Plan, settings: Settings, as_json: bool) -> bool:
    """What every rank does; rank 0 prints. Returns whether all contracts held."""
    from commlang.execute.session import run_session

    outcome = run_session(context, plan, settings)
    if context.info.rank == 0:
        from commlang.report.run import make_report, render

        report = make_report(plan, outcome, settings.seed)
        print(report.model_dump_json(indent=2) if as_json else render(report), flush=True)
    return outcome.ok


def _plan(
    file: str, info: RankInfo | None, options: LaunchOptions | None, given: dict[str, Any]
) -> Plan:
    from commlang.expand.run import MAX_EVENTS
    from commlang.plan import make_plan
    from commlang.verify import default_world, find_pattern, parse_settings, preset_values

    definition = find_pattern(file)
    values = parse_settings(given["settings"])
    world = info.world_size if info else None
    if given["preset"]:
        preset_world, preset_set = preset_values(definition, given["preset"])
        world, values = world or preset_world, {**preset_set, **values}
    if options is not None and given["nproc_per_node"]:
        world = given["nproc_per_node"] * options.nodes
    if world is None:
        world = default_world(definition, values)
        if options is not None and world % options.nodes:
            raise UsageError(f"{world} ranks on {options.nodes} nodes: give --nproc-per-node")
    return make_plan(definition, world, values, max_events=given["max_events"] or MAX_EVENTS)


def _launch_options(given: dict[str, Any]) -> LaunchOptions:
    from commlang.execute.options import LaunchOptions

    conf = [part.partition("=") for part in given["rdzv_conf"].split(",") if part]
    options = LaunchOptions(
        nproc_per_node=given["nproc_per_node"] or 1,
        nnodes=given["nnodes"],
        node_rank=given["node_rank"],
        rdzv_backend=given["rdzv_backend"],
        rdzv_endpoint=given["rdzv_endpoint"],
        rdzv_id=given["rdzv_id"],
        rdzv_conf={key.strip(): value.strip() for key, _, value in conf},
        master_addr=given["master_addr"],
        master_port=given["master_port"],
        standalone=given["standalone"],
        start_method=given["start_method"],
        local_addr=given["local_addr"],
    )
    return options.checked()


def _settings(given: dict[str, Any]) -> Settings:
    from commlang.execute.settings import Settings

    pairs = [text.partition("=") for text in given["externs"]]
    return Settings(
        backend=given["backend"],
        device=given["device"],
        timeout=given["timeout"],
        iterations=given["iters"],
        warmup=given["warmup"],
        seed=given["seed"],
        externs=tuple((name, target) for name, _, target in pairs),
    )


def _print_plan(plan: Plan, as_json: bool) -> None:
    if as_json:
        click.echo(plan.to_json())
        return
    from commlang.report.plan import render_plan

    click.echo(render_plan(plan))
