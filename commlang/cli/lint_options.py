"""Options of `commlang lint` that say for what is checked, and which rules are asked for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from commlang.diagnostics import nearest
from commlang.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.checks.selection import Selection
    from commlang.transports import Target

ADVICE = "CL4"


def make_selection(select: Sequence[str], ignore: Sequence[str], advice: bool) -> Selection:
    """The rules that `--select`, `--ignore` and `--advice` ask for; raises UsageError.

    Advice is given to those who select it, be it as `ALL`; the longest code that fits decides.
    """
    from commlang.checks.selection import DEFAULT, Selection

    chosen, left_out = _codes(select, "--select"), _codes(ignore, "--ignore")
    if not chosen:
        chosen, left_out = DEFAULT.select, (*(() if advice else DEFAULT.ignore), *left_out)
    return Selection((*chosen, *([ADVICE] if advice else [])), left_out)


def make_target(
    backend: str | None,
    nccl_init: str,
    device: str | None,
    ranks_per_node: int | None,
    torch_release: str,
) -> Target:
    """Where the patterns are to run; without a backend, wherever they may."""
    from commlang.transports import Backend, NcclInit, Target

    chosen = Backend(backend) if backend else None
    return Target(chosen, NcclInit(nccl_init), device, ranks_per_node, torch_release)


def _codes(texts: Sequence[str], option: str) -> tuple[str, ...]:
    codes = [code.strip().upper() for text in texts for code in text.split(",")]
    for code in codes:
        _check(code, option)
    return tuple(codes)


def _check(code: str, option: str) -> None:
    from commlang.checks.selection import ALL

    if code == ALL:
        return
    if not re.fullmatch(r"CL\d{0,3}", code):
        hint = "write codes or their beginnings, as in `CL201,CL4`"
        raise UsageError(f"{option} {code or '(nothing)'}: this is no code; {hint}")
    # All pages are loaded for this, which those who select no rules need not wait for.
    from commlang.checks.pages import GROUPS, pages

    if not any(known.startswith(code) for known in (*GROUPS, *pages())):
        near = nearest(code, pages())
        hint = f"did you mean `{near}`?" if near else "`commlang rule` lists them"
        raise UsageError(f"{option} {code}: there is no such rule; {hint}")
