"""`commlang lint`: everything that is wrong with patterns, before they run."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any

import click

from commlang.cli.files import expand_folders, paths_argument
from commlang.cli.guard import say
from commlang.cli.worlds import progress_line, worlds
from commlang.errors import UsageError
from commlang.version import TORCH

if TYPE_CHECKING:
    from commlang.verify import Options, Outcome


def size(text: str) -> int:
    """A whole number from 1 up, with or without a suffix: 8, 64Ki, 10M."""
    from commlang.syntax.literals import number

    try:
        value, unit = number(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if unit or not isinstance(value, int) or not 1 <= value < 1 << 62:
        raise click.BadParameter(f"`{text}` is not a whole number from 1 up")
    return value


def release(text: str) -> str:
    """A release of torch, as in `2.13`."""
    if not re.fullmatch(r"\d{1,4}\.\d{1,4}(\.\d{1,4})?", text):
        raise click.BadParameter(f"`{text}` is not a release such as {TORCH}")
    return text


@click.command("lint")
@paths_argument
@click.option(
    "--world",
    "worlds",
    type=worlds,
    metavar="N|A..B",
    help="Check for N ranks, or for every world of `2..64`, `2..64:2` or `4,8,16`.",
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--preset", metavar="NAME", help="Take parameters and the world from a preset.")
@click.option(
    "--max-events",
    type=size,
    metavar="N",
    default="50M",
    show_default=True,
    help="Refuse to expand a pattern to more events.",
)
@click.option(
    "--backend",
    type=click.Choice(["gloo", "nccl", "mpi"]),
    help="Check for this backend; else for what all honour, with warnings of hangs on one only.",
)
@click.option(
    "--nccl-init",
    type=click.Choice(["lazy", "eager"]),
    default="lazy",
    show_default=True,
    help="When NCCL makes its communicators: at first use, or at once (`device_id=` is given).",
)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), help="Where the tensors are.")
@click.option(
    "--ranks-per-node",
    type=size,
    metavar="N",
    help="The ranks of a node, for advice on what crosses between nodes.",
)
@click.option(
    "--torch",
    "torch_release",
    type=release,
    default=TORCH,
    show_default=True,
    metavar="X.Y",
    help="The release of torch that is to run it.",
)
@click.option("--select", multiple=True, metavar="CODES", help="Only these rules: `CL201,CL23`.")
@click.option("--ignore", multiple=True, metavar="CODES", help="Leave these rules out.")
@click.option("--advice", is_flag=True, help="Give advice on speed too (CL4).")
@click.option("--strict", is_flag=True, help="Refuse contracts that could not be decided.")
@click.option("--fix", is_flag=True, help="Mend what is mechanical, then check.")
@click.option("--diff", is_flag=True, help="Write nothing; show what --fix would change.")
@click.option(
    "--output-format",
    type=click.Choice(["text", "json", "github", "sarif"]),
    default="text",
    show_default=True,
    help="For people, programs, GitHub's annotations, or code scanning.",
)
def command(paths: tuple[str, ...], output_format: str, **given: Any) -> int:
    """Check pattern files: syntax, names, types, matching and freedom from deadlock.

    PATH is a file, a folder, a name from the library, `-` for standard input, or FILE:PATTERN for
    one pattern of a file.

    \b
      commlang lint patterns/                       every pattern file below a folder
      commlang lint ring.cl --world 8 --set n=64Mi  for 8 ranks and this size
      commlang lint step.cl:forward --preset dgx    one pattern, with one of its presets
      commlang lint ring.cl --world 2..64           every world from 2 to 64 ranks

    A pattern is checked with the ranks and parameters given; else with its defaults, and once for
    each of its presets. By default it has as many ranks as its mesh has places, else 4, else the
    fewest that it accepts. The answer is exact for these, and says nothing of others: an exchange
    of pairs may be right for 4 ranks and wrong for 5. Exit code 1 means errors or warnings, 2 that
    a file could not be read or an option made no sense. `commlang rule CODE` explains a finding.
    """
    # numpy's OpenBLAS starts a thread per core on import, and nothing here multiplies matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from commlang.verify import Outcome

    options = _options(given)
    if given["fix"] or given["diff"]:
        from commlang.cli.lint_fix import fix_all

        unread, would = fix_all(paths, options, dry=given["diff"])
        if given["diff"]:
            return 2 if unread else int(would)
    outcome = Outcome()
    unread = _lint_all(paths, options, outcome)
    outcome.judge_ignores(options.selection)
    unused = outcome.unused(options.choice)
    if unused and not unread:
        raise UsageError(unused)
    if outcome.files or output_format in ("json", "sarif"):
        _print(outcome, output_format)
    if options.choice.worlds and outcome.files and not (outcome.patterns or outcome.findings):
        raise UsageError("no pattern was checked, since none accepts any of these worlds")
    return 2 if unread else int(outcome.failed)


def _options(given: dict[str, Any]) -> Options:
    from commlang.cli.lint_options import make_selection, make_target
    from commlang.verify import Choice, Options, parse_settings

    several: tuple[int, ...] = given["worlds"] or ()
    world, several = (several[0], ()) if len(several) == 1 else (None, several)
    return Options(
        choice=Choice(world, parse_settings(given["settings"]), given["preset"], several),
        target=make_target(
            given["backend"],
            given["nccl_init"],
            given["device"],
            given["ranks_per_node"],
            given["torch_release"],
        ),
        selection=make_selection(given["select"], given["ignore"], given["advice"]),
        strict=given["strict"],
        max_events=given["max_events"],
        progress=progress_line(),
    )


def _lint_all(paths: tuple[str, ...], options: Options, outcome: Outcome) -> list[UsageError]:
    """Lint into the outcome; what cannot be read is said, and the rest is linted all the same."""
    from commlang.verify import lint_source, locate_source, split_target

    failed: list[UsageError] = []

    def fail(error: UsageError) -> None:
        failed.append(error)
        say(f"error: {error}")

    for path in expand_folders(paths, fail):
        file, pattern = split_target(path)
        try:
            source = locate_source(file)
            lint_source(source, pattern, options, outcome=outcome)
        except UsageError as error:
            fail(error)
    return failed


def _print(outcome: Outcome, output_format: str) -> None:
    from commlang.report.lint import lint_json, render_text, wants_colour

    match output_format:
        case "json":
            _dump(lint_json(outcome))
        case "sarif":
            from commlang.report.sarif import sarif

            _dump(sarif(outcome))
        case "github":
            from commlang.report.github import render_github

            click.echo(render_github(outcome))
        case _:
            colour = wants_colour(sys.stdout, os.environ)
            click.echo(render_text(outcome, colour=colour), color=True)


def _dump(data: dict[str, Any]) -> None:
    import json

    click.echo(json.dumps(data, indent=2, ensure_ascii=False, default=str))
