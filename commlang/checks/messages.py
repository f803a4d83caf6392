"""Messages whose two ends disagree: what the rules on them share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.program.columns import Array
    from commlang.program.matching import Messages


class Disagreement(NamedTuple):
    """The first message of a pair of statements that is wrong: its rows, and how many follow."""

    send: int
    recv: int
    more: int


def per_pair(
    facts: Facts, wrong: Array, messages: Messages | None = None
) -> Iterator[Disagreement]:
    """One wrong message for each pair of statements; `wrong` holds a bool per message.

    The messages are those of the program, unless others are given.
    """
    bad = np.flatnonzero(wrong)
    if not len(bad):
        return
    met = messages or facts.messages
    site, send, recv = facts.program.site, met.send, met.recv
    pair = site[send[bad]].astype(np.int64) * len(facts.program.sites) + site[recv[bad]]
    _, first, count = np.unique(pair, return_index=True, return_counts=True)
    for i, many in zip(bad[first].tolist(), count.tolist(), strict=True):
        yield Disagreement(int(send[i]), int(recv[i]), many - 1)
