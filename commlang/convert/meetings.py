"""Which receive of a schedule gets which send.

Torch sends without tags, so that messages from one rank to another are received in the order in
which they are sent, whatever stage they are for. If a rank receives in another order, a stage gets
a tensor of the same shape that is meant for another, and nothing tells.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from commlang.convert.actions import RECVS, SENDS, Act, Action
from commlang.convert.order import peer_stage
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.convert.schedule import Schedule

_SENT_AS = {Act.RECV_F: Act.SEND_F, Act.RECV_B: Act.SEND_B}


@record
class Swap:
    """A receive, on `rank` at `index` of its row, that gets another message than its own."""

    rank: int
    index: int
    recv: Action
    got: Action


def swaps(schedule: Schedule, at: Sequence[int]) -> list[Swap]:
    """The receives that get what is not for them, by rank and index; `at` is each stage's rank."""
    sent: dict[tuple[int, int], list[Action]] = defaultdict(list)
    for rank, row in enumerate(schedule.rows):
        for action in row.actions:
            if action.act in SENDS:
                sent[rank, at[peer_stage(action)]].append(action)
    found: list[Swap] = []
    for rank, row in enumerate(schedule.rows):
        turns: dict[int, int] = defaultdict(int)
        for index, recv in enumerate(row.actions):
            if recv.act not in RECVS:
                continue
            source = at[peer_stage(recv)]
            queue, turn = sent[source, rank], turns[source]
            turns[source] += 1
            if turn < len(queue) and queue[turn] != sender(recv):
                found.append(Swap(rank, index, recv, queue[turn]))
    return found


def sender(recv: Action) -> Action:
    """The send whose message a receive is meant for."""
    return Action(_SENT_AS[recv.act], peer_stage(recv), recv.batch)
