"""Whether a schedule makes sense on each rank: what torch would refuse, or run on garbage.

What holds between ranks (who meets whom, and whether all get there) is not looked at: that is
for the checks of the pattern.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.convert.actions import COMPUTE, GRADIENT, RECVS, WEIGHTS, Act, Action
from commlang.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.convert.schedule import Schedule


def check_order(schedule: Schedule, at: Sequence[int]) -> None:
    """Raise UsageError at the first action that comes twice, too early, or to nothing.

    `at` is the rank of each stage. A schedule without sends is taken to be complete otherwise.
    """
    received = schedule.communicates()
    for rank, row in enumerate(schedule.rows):
        seen: set[Action] = set()
        for index, action in enumerate(row.actions):
            for atom in action.atoms():
                fault = _fault(atom, seen, at, received=received)
                if fault:
                    raise UsageError(f"{schedule.where(rank, index)}: {fault}")
                if atom.act not in WEIGHTS:
                    seen.add(atom)
    _check_complete(schedule, at)


def _fault(atom: Action, seen: set[Action], at: Sequence[int], *, received: bool) -> str | None:
    act, stage, batch, _ = atom
    if act in WEIGHTS:
        return None
    if atom in seen:
        return f"`{atom}` is here twice"
    if act not in COMPUTE:
        fault = _no_peer(atom, at)
        if fault:
            return fault
    for needed in _needs(atom, at, received=received):
        if seen.isdisjoint(needed):
            return f"`{atom}` comes before {needed[0]}, which it needs"
    if act in RECVS:
        used = Action(Act.FORWARD, stage, batch)
        gradients = [Action(kind, stage, batch) for kind in sorted(GRADIENT)]
        early = {used} if act is Act.RECV_F else set(gradients)
        if early & seen:
            return f"`{atom}` comes after {(early & seen).pop()}, which needs it"
    return None


def _no_peer(atom: Action, at: Sequence[int]) -> str | None:
    """What is wrong with the other end of a message."""
    peer = peer_stage(atom)
    if not 0 <= peer < len(at):
        return f"`{atom}`: there is no stage {'before' if peer < 0 else 'after'} stage {atom.stage}"
    if at[peer] == at[atom.stage]:
        return (
            f"`{atom}`: stages {atom.stage} and {peer} are both on rank {at[peer]}, so that "
            "nothing is sent"
        )
    return None


def peer_stage(atom: Action) -> int:
    """The stage at the other end of a SEND or RECV."""
    return atom.stage + (1 if atom.act in (Act.SEND_F, Act.RECV_B) else -1)


def _needs(atom: Action, at: Sequence[int], *, received: bool) -> list[list[Action]]:
    """What must have come before on this rank, each as a choice."""
    act, stage, batch, _ = atom
    forward = [Action(Act.FORWARD, stage, batch)]
    match act:
        case Act.FORWARD:
            return _input(stage, stage - 1, batch, at, Act.RECV_F, received=received)
        case Act.BACKWARD | Act.BACKWARD_INPUT:
            return [forward, *_input(stage, stage + 1, batch, at, Act.RECV_B, received=received)]
        case Act.BACKWARD_WEIGHT:
            return [[Action(Act.BACKWARD_INPUT, stage, batch)]]
        case Act.SEND_F:
            return [forward]
        case Act.SEND_B:
            return [_gradients(stage, batch)]
        case _:
            return []


def _input(
    stage: int, source: int, batch: int, at: Sequence[int], recv: Act, *, received: bool
) -> list[list[Action]]:
    """What brings a stage its input: a message, or the neighbour's work on the same rank."""
    if not 0 <= source < len(at):
        return []
    if at[source] != at[stage]:
        return [[Action(recv, stage, batch)]] if received else []
    if recv is Act.RECV_F:
        return [[Action(Act.FORWARD, source, batch)]]
    return [_gradients(source, batch)]


def _gradients(stage: int, batch: int) -> list[Action]:
    return [Action(Act.BACKWARD, stage, batch), Action(Act.BACKWARD_INPUT, stage, batch)]


def _check_complete(schedule: Schedule, at: Sequence[int]) -> None:
    """Every stage works on every micro-batch, forward and, if any does, backward."""
    done: dict[tuple[Act, int], set[int]] = {}
    for row in schedule.rows:
        for action in row.actions:
            for atom in action.atoms():
                done.setdefault((atom.act, atom.stage), set()).add(atom.batch)
    backward = schedule.uses(*GRADIENT)
    every = set(range(schedule.batches))
    for stage, rank in enumerate(at):
        halves = done.get((Act.BACKWARD_INPUT, stage), set[int]())
        tests = [(Act.FORWARD, every - done.get((Act.FORWARD, stage), set()))]
        if backward:
            full = done.get((Act.BACKWARD, stage), set[int]())
            tests.append((Act.BACKWARD, every - full - halves))
            weights = done.get((Act.BACKWARD_WEIGHT, stage), set[int]())
            tests.append((Act.BACKWARD_WEIGHT, halves - weights))
        for act, missing in tests:
            if missing:
                lost = Action(act, stage, min(missing))
                raise UsageError(
                    f"{schedule.where(rank)}: `{lost}` is missing in the row of rank {rank}; "
                    f"there are {schedule.batches} micro-batches"
                )
