"""What torch does to a schedule of computations: add sends and receives, defer the receives.

The two passes follow `_add_send_recv` and `_defer_recv_ops` of torch 2.13 action for action
(`torch/distributed/pipelining/schedules.py`), so that what they make can be judged without torch.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from commlang.convert.actions import GRADIENT, RECVS, SENDS, Act, Action
from commlang.convert.order import peer_stage
from commlang.convert.schedule import Row, Schedule
from commlang.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

_INPUTS = {Act.FORWARD: Act.RECV_F} | dict.fromkeys(GRADIENT, Act.RECV_B)
"""What brings a computation its input from another rank."""


def add_send_recv(schedule: Schedule, at: Sequence[int]) -> Schedule:
    """Put a send behind each computation whose result is needed on another rank (`at`).

    The receive is put at the end of what its rank has so far, so that the two halves of all
    messages come in one order. Raises UsageError if a rank waits for what never comes.
    """
    waiting = [deque(row.actions) for row in schedule.rows]
    rows: list[list[Action]] = [[] for _ in waiting]
    done: list[set[Action]] = [set() for _ in waiting]
    while any(waiting):
        progress = False
        for rank, queue in enumerate(waiting):
            if not queue or not all(_ready(atom, done[rank], at) for atom in queue[0].atoms()):
                continue
            action = queue.popleft()
            progress = True
            rows[rank].append(action)
            for atom in action.atoms():
                done[rank].add(atom)
                for half, owner in _message(atom, at):
                    rows[owner].append(half)
                    done[owner].add(half)
        if not progress:
            rank = next(rank for rank, queue in enumerate(waiting) if queue)
            index = len(schedule.rows[rank].actions) - len(waiting[rank])
            raise UsageError(
                f"{schedule.where(rank, index)}: `{waiting[rank][0]}` waits for what no rank "
                "gets to compute; the ranks wait for each other"
            )
    return replace(schedule, rows=[Row(row) for row in rows])


def _ready(atom: Action, done: set[Action], at: Sequence[int]) -> bool:
    act, stage, batch, _ = atom
    if act is Act.FORWARD and stage > 0:
        return not done.isdisjoint(
            (Action(Act.RECV_F, stage, batch), Action(Act.FORWARD, stage - 1, batch))
        )
    if act in GRADIENT and stage < len(at) - 1:
        before = [Action(Act.RECV_B, stage, batch)]
        before += [Action(kind, stage + 1, batch) for kind in GRADIENT]
        return not done.isdisjoint(before)
    return True


def _message(atom: Action, at: Sequence[int]) -> list[tuple[Action, int]]:
    """The two halves of the message that a computation gives rise to, with their ranks."""
    act, stage, batch, _ = atom
    if act is Act.FORWARD:
        target, send, recv = stage + 1, Act.SEND_F, Act.RECV_F
    elif act in GRADIENT:
        target, send, recv = stage - 1, Act.SEND_B, Act.RECV_B
    else:
        return []
    if not 0 <= target < len(at) or at[target] == at[stage]:
        return []
    return [(Action(send, stage, batch), at[stage]), (Action(recv, target, batch), at[target])]


def defer_recv(schedule: Schedule, at: Sequence[int]) -> Schedule:
    """Move each receive down to its computation, as torch does for `defer_pp_recv=True`.

    Only the lower of two ranks receives what it has to from the other before it sends to it.
    """
    return replace(
        schedule,
        rows=[Row(_deferred(row.actions, rank, at)) for rank, row in enumerate(schedule.rows)],
    )


def _deferred(actions: Sequence[Action], rank: int, at: Sequence[int]) -> list[Action]:
    result: list[Action] = []
    held: dict[Action, int] = {}  # each with the rank it comes from
    for action in actions:
        if action.act in RECVS:
            held[action] = at[peer_stage(action)]
            continue
        if action.act in SENDS and rank < (peer := at[peer_stage(action)]):
            due = [recv for recv, source in held.items() if source == peer]
        else:
            due = [
                Action(_INPUTS[atom.act], atom.stage, atom.batch)
                for atom in action.atoms()
                if atom.act in _INPUTS
            ]
        for recv in due:
            if recv in held:
                del held[recv]
                result.append(recv)
        result.append(action)
    return [*result, *held]
