"""`commlang new`: a pattern file to start from."""

from __future__ import annotations

from pathlib import Path

import click

from commlang.cli.rewrite import create_file
from commlang.errors import UsageError
from commlang.operations import OPERATIONS

SUFFIX = ".cl"
STARTER = '''\
# Every rank runs these lines, as with a torch.distributed script. Check and run them with
#     commlang lint {path}
#     commlang run {path}

pattern {name}(x: float32[n], inbox: float32[n], n = 1Ki):
    """Every rank passes its x to the next rank; then all add up what they received."""
    require world >= 2, "a ring needs two ranks"
    ensure inbox == sum(old(x) @ r for r in ranks)  # checked on real data after each run
    preset large: world = 8, n = 16Mi               # use it with --preset large

    parallel:  # starts both, ends when both have ended
        send(x, dst=ranks.next)
        recv(inbox, src=ranks.prev)
    all_reduce(inbox, op=sum)
'''


@click.command("new")
@click.argument("target", metavar="NAME|PATH")
def command(target: str) -> None:
    """Write a small pattern, with comments, that lints clean and runs.

    \b
      commlang new my_ring              writes my_ring.cl here
      commlang new patterns/my_ring.cl  writes that file

    A file that exists is never overwritten.
    """
    path = Path(target if target.endswith(SUFFIX) else target + SUFFIX)
    name = path.stem.replace("-", "_")
    text = STARTER.format(name=name, path=path)
    _check_name(name, text, path)
    create_file(str(path), text)
    click.echo(f"wrote {path}; check it with `commlang lint {path}`")


def _check_name(name: str, text: str, path: Path) -> None:
    """Refuse what cannot be the name of this pattern, before anything is written."""
    if not (name.isascii() and name.isidentifier()):
        hint = "a name is letters, digits and `_`, and starts with no digit"
        raise UsageError(f"`{name}` cannot be the name of a pattern: {hint}")
    if name in OPERATIONS:
        raise UsageError(f"`{name}` is an operation already; choose another name")
    from commlang.source import Source
    from commlang.verify import lint_source

    findings = lint_source(Source(text, str(path))).findings
    if findings:
        raise UsageError(f"`{name}` cannot be the name of a pattern: {findings[0].message}")
