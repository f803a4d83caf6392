"""`commlang tune`: which pattern does a collective fastest here, written down for `auto` plans."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commlang.cli.files import refuse_input
from commlang.cli.guard import say
from commlang.cli.lint import size
from commlang.cli.start import started
from commlang.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.execute.rank import RankContext
    from commlang.execute.settings import TuneSettings
    from commlang.execute.tune import Timed
    from commlang.tuning.races import Race
    from commlang.tuning.table import Row, Table

MOST = 64
"""Most sizes that are measured."""


def sizes(text: str) -> tuple[int, ...]:
    """Sizes in bytes: `1Ki..1Mi` in steps of a factor of 4, or `1Ki..1Mi:x2`, or `1Ki,64Ki`."""
    found: set[int] = set()
    for part in text.split(","):
        first, dots, rest = part.strip().partition("..")
        last, colon, step = rest.partition(":")
        low = size(first)
        high = size(last) if dots else low
        factor = size(step.removeprefix("x")) if colon else 4
        if high < low or factor < 2:
            hint = "write the smaller one first" if high < low else "steps are a factor from 2 up"
            raise click.BadParameter(f"`{part}`: {hint}, as in `1Ki..1Mi:x4`")
        while low <= high and len(found) <= MOST:
            found.add(low)
            low *= factor
    if len(found) > MOST:
        raise click.BadParameter(f"`{text}` is more than {MOST} sizes; take larger steps")
    return tuple(sorted(found))


@click.command("tune")
@click.argument("patterns", nargs=-1)
@click.option("--collective", required=True, metavar="NAME", help="What the patterns do.")
@click.option(
    "--sizes",
    type=sizes,
    default="1Ki..1Mi",
    show_default=True,
    metavar="A..B[:xF]",
    help="Bytes of the largest tensor, in steps of a factor F (4), or a list.",
)
@click.option(
    "--nproc-per-node",
    "worlds",
    type=click.IntRange(1),
    multiple=True,
    metavar="N",
    help="Ranks; may be repeated, for one table of several worlds.  [default: 4]",
)
@click.option("-o", "--output", metavar="FILE", help="Write the table that `auto:FILE` reads.")
@click.option("--backend", default="auto", show_default=True, help="gloo, nccl or mpi.")
@click.option("--device", default="auto", show_default=True, help="cpu or cuda.")
@click.option("-d", "--datatype", default="float32", show_default=True, metavar="DTYPE")
@click.option("--rounds", type=click.IntRange(1), default=24, show_default=True)
@click.option(
    "--calls", type=click.IntRange(1), default=4, show_default=True, help="Calls of each turn."
)
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=60.0)
@click.option("--verbose", "-v", is_flag=True, help="Print the times of all patterns.")
def command(patterns: tuple[str, ...], **given: Any) -> int:
    """Find the fastest pattern for a collective, per size and number of ranks.

    \b
      commlang tune --collective all_reduce --nproc-per-node 4 --nproc-per-node 8 -o tuned.json
      commlang run auto:tuned.json --nproc-per-node 8 --set n=4Ki

    All of the library's patterns that do what the collective does are timed against the backend's
    own, or those that are named. They take turns in random order, on ranks that are started once;
    what is far behind after six rounds is left out. Times are of the slowest rank.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from commlang.execute.environment import detect

    # Ranks of MPI find one another by MPI.
    info = detect(os.environ, need_master="mpi" not in given["backend"])
    worlds = given["worlds"] or (4,)
    for name in patterns:
        refuse_input("-o", given["output"], pattern=name)
    entered = [_entered(name) for name in patterns]
    found: list[tuple[list[Race], Timed]] = []
    for world in [info.world_size] if info else sorted(set(worlds)):
        races = _races(entered, world, given, quiet=bool(info and info.rank))
        if info is None:
            found.append((races, _launch(races, world, given)))
            continue
        from commlang.execute.rank import run_rank

        settings = _settings(given)
        timed = run_rank(rank_main, (races, settings), info, timeout=settings.timeout)
        if info.rank:
            return 0
        found.append((races, timed))
    _tell(_table(found, given), given)
    return 0


def rank_main(context: RankContext, races: Sequence[Race], settings: TuneSettings) -> Timed:
    """What every rank does; rank 0's result has the times."""
    from commlang.execute.tune import tune

    return tune(context, [list(race.plans.values()) for race in races], settings)


def _launch(races: list[Race], world: int, given: dict[str, Any]) -> Timed:
    from commlang.execute.diagnosis import Narrator
    from commlang.execute.options import LaunchOptions

    def at(rank: int, position: int) -> str:
        return f"a pattern for `{given['collective']}` on {races[(position >> 32) - 1].bytes} bytes"

    settings, options = _settings(given), LaunchOptions(nproc_per_node=world)
    modules = ("commlang.execute.tune",)
    return started(rank_main, (races, settings), options, settings, Narrator(at), modules)[0]


def _settings(given: dict[str, Any]) -> TuneSettings:
    from commlang.execute.settings import TuneSettings

    names = ("backend", "device", "timeout", "rounds", "calls")
    return TuneSettings(**{name: given[name] for name in names})


def _entered(name: str) -> str:
    """A name that is found from elsewhere too: the table may be read in another directory."""
    from commlang.verify import split_target

    file, pattern = split_target(name)
    if not Path(file).is_file():
        return name
    path = str(Path(file).resolve())
    return f"{path}:{pattern}" if pattern else path


def _races(names: Sequence[str], world: int, given: dict[str, Any], *, quiet: bool) -> list[Race]:
    from commlang.cli.prepare import target_of
    from commlang.dtypes import DTYPES
    from commlang.tuning.races import races

    if given["datatype"] not in DTYPES:
        raise UsageError(f"-d {given['datatype']}: there is no such dtype")
    target = target_of(_settings(given), world)
    found, refused = races(
        given["collective"], names, world, given["sizes"], given["datatype"], target
    )
    if not quiet:
        for name, why in refused.items():
            if names or given["verbose"]:
                say(f"`{name}` takes no part at {world} ranks: {why}")
    return found


def _table(found: Sequence[tuple[Sequence[Race], Timed]], given: dict[str, Any]) -> Table:
    import platform

    from commlang.tuning.table import Host, Table

    timed = found[0][1]
    host = Host(cpu=_cpu(), cpus=os.cpu_count() or 1, python=platform.python_version())
    return Table(
        torch=timed.torch,
        collective=given["collective"],
        backend=timed.backend,
        device=timed.device.partition(":")[0],
        dtype=given["datatype"],
        host=host,
        rows=tuple(row for races, timed in found for row in _rows(races, timed)),
    )


def _rows(races: Sequence[Race], timed: Timed) -> list[Row]:
    from commlang.tuning.table import Row, Times

    return [
        Row(
            world=race.world,
            bytes=race.bytes,
            times={n: Times.of(s) for n, s in zip(race.plans, seconds, strict=True)},
        )
        for race, seconds in zip(races, timed.seconds, strict=True)
    ]


def _cpu() -> str:
    """The model of the CPU where the system tells it, else its architecture."""
    import platform

    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _tell(table: Table, given: dict[str, Any]) -> None:
    from commlang.report.tune import render

    click.echo(render(table, everything=given["verbose"]))
    if given["output"]:
        table.write(given["output"])
