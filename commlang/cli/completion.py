"""`commlang completion`: what a shell needs to complete commands, options and files."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

VARIABLE = "_COMMLANG_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell, to be read when it starts.

    \b
      bash:  commlang completion bash >> ~/.bashrc
      zsh:   commlang completion zsh >> ~/.zshrc
      fish:  commlang completion fish > ~/.config/fish/completions/commlang.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, "click knows all three shells"
    click.echo(kind(ctx.find_root().command, {}, "commlang", VARIABLE).source())
