"""`commlang topology`: the machines that programs can be simulated on."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


def complete_machine(
    ctx: click.Context, param: click.Parameter, start: str
) -> list[CompletionItem]:
    """Shipped machines that begin like that, and files."""
    from commlang.topology import machine_names

    names = [CompletionItem(name) for name in machine_names() if name.startswith(start)]
    return [*names, CompletionItem(start, type="file")]


@click.command("topology")
@click.argument("machine", required=False, metavar="[NAME|FILE]", shell_complete=complete_machine)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="How to print it.",
)
@click.option(
    "--world",
    type=click.IntRange(1, 1 << 24),
    metavar="N",
    help="Only the part that N ranks run on.",
)
def command(machine: str | None, kind: str, world: int | None) -> None:
    """Show a machine: its levels and links, each figure with its source.

    NAME is a shipped machine; without one, they are listed. FILE is a machine's YAML, a network of
    ASTRA-sim's analytical back end (YAML), or a topology that NCCL wrote (XML).

    \b
      commlang topology                                     the shipped machines
      commlang topology dgx-h100-rails                      one of them
      commlang topology dgx-h100 --format yaml > my.yaml    one to change
      commlang topology nccl.xml --format yaml > my.yaml    the same for a machine of NCCL's
    """
    from commlang.report.topology import render_list, render_machine, to_json
    from commlang.topology import load_machine, machine_names, write_yaml
    from commlang.topology.load import is_own_format, machine_source

    if machine is None:
        if world is not None or kind == "yaml":
            raise click.UsageError("name a machine; `commlang topology` alone lists them")
        machines = [load_machine(name) for name in machine_names()]
        click.echo(to_json(machines) if kind == "json" else render_list(machines))
        return
    loaded = load_machine(machine)
    shown = loaded if world is None else loaded.for_world(world)
    if kind == "json":
        click.echo(to_json(shown))
    elif kind == "text":
        click.echo(render_machine(shown))
    elif shown is loaded and is_own_format(machine_source(machine)):
        # With its comments and units, for who will change it.
        click.echo(machine_source(machine).text, nl=False)
    else:
        click.echo(write_yaml(shown), nl=False)
