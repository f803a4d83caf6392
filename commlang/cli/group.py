"""The command `commlang` itself, which imports a sub-command when it is called."""

from __future__ import annotations

from importlib import import_module

import click

from commlang.diagnostics import nearest
from commlang.version import __version__

COMMANDS = {
    "run": ("commlang.cli.run", "Check a pattern and run it on real ranks."),
    "lint": ("commlang.cli.lint", "Find what is wrong with patterns, deadlocks included."),
    "rule": ("commlang.cli.rule", "Explain a code of lint, or list all."),
    "fmt": ("commlang.cli.fmt", "Format pattern files."),
    "new": ("commlang.cli.new", "Start a pattern file."),
    "bench": ("commlang.cli.bench", "Time patterns over a range of sizes, as nccl-tests does."),
    "draw": ("commlang.cli.draw", "Draw a pattern: a timeline, its graph, its traffic."),
    "simulate": ("commlang.cli.simulate", "Predict how long a pattern takes on a machine."),
    "compare": ("commlang.cli.compare", "Compare patterns: bytes, memory, time, proofs."),
    "export": ("commlang.cli.export", "Write a pattern as a Python script that needs torch only."),
    "tune": ("commlang.cli.tune", "Measure which pattern is fastest, for `auto` plans."),
    "calibrate": ("commlang.cli.calibrate", "Measure what communication costs here."),
    "explain": ("commlang.cli.explain", "Say why a job hangs, from its Flight Recorder dumps."),
    "doctor": ("commlang.cli.doctor", "Say what this machine offers, and what could be better."),
    "import": ("commlang.cli.import_", "Turn a pipeline schedule of torch into a pattern."),
    "topology": ("commlang.cli.topology", "Show a machine description, or list the shipped ones."),
    "list": ("commlang.cli.listing", "List the pattern library."),
    "show": ("commlang.cli.show", "Print a pattern of the library."),
    "completion": ("commlang.cli.completion", "Print a shell's completion script."),
}
"""Each command's module, whose `command` it is, and what it does, told without importing it."""


class LazyGroup(click.Group):
    """A group whose commands are imported one at a time, so that each costs only itself."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _ = COMMANDS[cmd_name]
        return import_module(module).command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            near = nearest(name, COMMANDS)
            hint = f"did you mean `{near}`?" if near else f"there are {', '.join(COMMANDS)}"
            raise click.UsageError(f"there is no command `{name}`; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def _dashes(name: str) -> str:
    """Options may be spelt as torchrun's may: `--nproc_per_node` is `--nproc-per-node`."""
    return name.replace("_", "-")


@click.group(
    cls=LazyGroup,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "token_normalize_func": _dashes,
        "max_content_width": 100,
    },
)
@click.version_option(
    __version__, "--version", prog_name="commlang", message="%(prog)s %(version)s"
)
def commlang() -> None:
    """Communication patterns for torch.distributed, proven free of deadlock before they run.

    \b
      commlang new my_pattern                   start a pattern file
      commlang lint my_pattern.cl               check it, with its defaults and its presets
      commlang run my_pattern.cl                run it on local ranks and verify the result
      commlang list                             see what the library has
      commlang run ring_all_reduce --set n=4Mi  run a pattern of the library

    Exit codes: 0 all is well, 1 findings or a failed run, 2 commlang could not start the work.
    """
