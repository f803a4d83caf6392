"""`commlang rule`: what a code means."""

from __future__ import annotations

import os
import sys

import click

from commlang.diagnostics import nearest
from commlang.errors import UsageError


@click.command("rule")
@click.argument("code", required=False)
def command(code: str | None) -> None:
    """Explain a code of `commlang lint`: what it means, why it matters, how to mend it.

    CODE is a code or the name of a rule. Without one, all rules are listed.

    \b
      commlang rule CL201
      commlang rule deadlock
      commlang rule
    """
    from commlang.checks.pages import pages
    from commlang.report.lint import wants_colour
    from commlang.report.rules import render_list, render_page

    colour = wants_colour(sys.stdout, os.environ)
    if code is None:
        click.echo(render_list(colour=colour), color=True)
        return
    names = {page.rule.name: found for found, page in pages().items()}
    chosen = names.get(code.lower(), code.upper())
    if chosen not in pages():
        raise UsageError(f"there is no rule `{code}`; {_hint(code, [*pages(), *names])}")
    click.echo(render_page(pages()[chosen], colour=colour), color=True)


def _hint(code: str, known: list[str]) -> str:
    near = nearest(code.upper(), known) or nearest(code.lower(), known)
    return f"did you mean `{near}`?" if near else "`commlang rule` lists them"
