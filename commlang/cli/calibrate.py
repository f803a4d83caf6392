"""`commlang calibrate`: what the present backend and ranks cost, as a machine's description."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from commlang.cli.guard import say
from commlang.cli.start import started
from commlang.cli.tune import sizes
from commlang.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.execute.calibrate import Measured
    from commlang.execute.rank import RankContext
    from commlang.execute.settings import Settings

LARGEST = 256 << 20
"""Most bytes of a message: a rank keeps two of each size."""


@click.command("calibrate")
@click.option("-o", "--output", metavar="FILE", help="Write the machine there, not to stdout.")
@click.option("--name", default="calibrated", show_default=True, help="Name of the machine.")
@click.option("--backend", default="auto", show_default=True, help="gloo, nccl or mpi.")
@click.option("--device", default="auto", show_default=True, help="cpu or cuda.")
@click.option("--nproc-per-node", type=click.IntRange(2), default=4, show_default=True, metavar="N")
@click.option(
    "--sizes",
    "chosen",
    type=sizes,
    default="1Ki..16Mi",
    show_default=True,
    metavar="A..B[:xF]",
    help="Bytes of a message, in steps of a factor F (4), or a list.",
)
@click.option("--iters", type=click.IntRange(1), default=20, show_default=True, help="Rounds.")
@click.option("--warmup", type=click.IntRange(0), default=2, show_default=True)
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=60.0)
def command(chosen: tuple[int, ...], **given: Any) -> int:
    """Measure what communication costs here, and write it as a machine's description.

    \b
      commlang calibrate --nproc-per-node 4 -o here.yaml
      commlang run ring_all_reduce --predict here.yaml

    Measured are ping-pong, all_reduce and local copies and sums, on local ranks or those of
    torchrun; latency, overhead and bandwidth (LogGP) are fitted to them, and times of the other
    collectives follow. They hold for this backend and this number of ranks.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from commlang.execute.environment import detect

    # Ranks of MPI find one another by MPI.
    info = detect(os.environ, need_master="mpi" not in given["backend"])
    _check(chosen, given["output"])
    if info is None:
        measured = _launch(chosen, given)
    else:
        from commlang.execute.rank import run_rank

        if info.world_size < 2:
            raise UsageError("one rank has nobody to talk to; start two or more")
        if info.spans_nodes:
            raise UsageError("only ranks of one host are measured; start them all on one")
        settings = _settings(given)
        measured = run_rank(rank_main, (chosen, settings), info, timeout=settings.timeout)
        if info.rank:
            return 0
    _write(measured, given)
    return 0


def _check(chosen: tuple[int, ...], output: str | None) -> None:
    if len(chosen) < 2:
        raise UsageError("one size gives no bandwidth; write two or more, as --sizes 1Ki..1Mi")
    if chosen[0] < 4 or chosen[-1] > LARGEST:
        raise UsageError(f"--sizes from 4 bytes (a float32) to {LARGEST >> 20} MiB")
    if output is not None:
        from commlang.trace.write import check_path

        check_path(output)


def rank_main(context: RankContext, chosen: Sequence[int], settings: Settings) -> Measured:
    """What every rank does; rank 0's result has the times."""
    from commlang.execute.calibrate import calibrate

    return calibrate(context, chosen, settings)


def _settings(given: dict[str, Any]) -> Settings:
    from commlang.execute.settings import Settings

    names = ("backend", "device", "warmup", "timeout")
    return Settings(iterations=given["iters"], **{name: given[name] for name in names})


def _launch(chosen: tuple[int, ...], given: dict[str, Any]) -> Measured:
    from commlang.execute.diagnosis import Narrator
    from commlang.execute.options import LaunchOptions

    settings = _settings(given)
    options = LaunchOptions(nproc_per_node=given["nproc_per_node"])
    modules = ("commlang.execute.calibrate",)
    narrator = Narrator(lambda _, position: f"measurement {position}")
    return started(rank_main, (chosen, settings), options, settings, narrator, modules)[0]


def _write(measured: Measured, given: dict[str, Any]) -> None:
    from commlang.calibrate import Samples, fit, machine_of, text_of
    from commlang.calibrate.told import doubts, facts, summary

    backend = measured.backend.removeprefix("commlang_")
    samples = Samples.of(measured.world, os.cpu_count() or 1, backend, measured.seconds)
    figures = fit(samples)
    for doubt in doubts(samples, figures):
        say(doubt)
    machine = machine_of(given["name"], samples, figures)
    text = text_of(machine, facts(measured.world, measured.backend, measured.torch, given["iters"]))
    if given["output"] is None:
        click.echo(text, nl=False)
        return
    from commlang.trace.write import write_whole

    write_whole(given["output"], [text])
    click.echo(summary(samples, figures))
    click.echo(f"written to {given['output']}; commlang run FILE --predict {given['output']}")
