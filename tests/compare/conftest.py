"""Commands in this process, and a few patterns to compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import Result, cli, folder

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Result", "cli", "folder"]

WHOLE = """\
pattern whole(x: float32[n], n = 1Ki, k = 1):
    ensure x == sum(old(x) @ r for r in ranks)
    preset large: world = 2, n = 4Ki
    all_reduce(x)
"""
BY_HAND = """\
extern add(x: update float32[n], y: read float32[n])

pattern by_hand(x: float32[n], n = 1Ki):
    ensure x == 2 * old(x)
    temp inbox: like x
    parallel:
        send(x, dst=ranks.next)
        recv(inbox, src=ranks.prev)
    add(x, inbox)
"""
STUCK = """\
pattern stuck(x: float32[n], y: float32[n], n = 1Ki):
    send(x, dst=ranks.next)
    recv(y, src=ranks.prev)
"""


@pytest.fixture
def files(folder: Path) -> Path:
    """whole.cl, by_hand.cl and stuck.cl in the working directory."""
    texts = {"whole": WHOLE, "by_hand": BY_HAND, "stuck": STUCK}
    for name, text in texts.items():
        (folder / f"{name}.cl").write_text(text, encoding="utf-8")
    return folder
