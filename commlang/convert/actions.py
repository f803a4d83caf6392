"""The actions of a torch pipeline schedule, as `torch.distributed.pipelining` writes them.

`2F0` is the forward of stage 2 on micro-batch 0; `I` and `W` are the two halves of the backward
`B`; `2RECV_F0` receives that forward's input, `2SEND_F0` sends its output. Actions on the weights
(`2UNSHARD`) have no micro-batch. `(2F4;5B1)OVERLAP_F_B` is one action made of two.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from commlang.diagnostics import nearest


class Act(StrEnum):
    """What an action does; the value is torch's name for it."""

    FORWARD = "F"
    BACKWARD = "B"
    BACKWARD_INPUT = "I"
    BACKWARD_WEIGHT = "W"
    SEND_F = "SEND_F"
    RECV_F = "RECV_F"
    SEND_B = "SEND_B"
    RECV_B = "RECV_B"
    UNSHARD = "UNSHARD"
    RESHARD = "RESHARD"
    REDUCE_GRAD = "REDUCE_GRAD"
    OVERLAP = "OVERLAP_F_B"


COMPUTE = frozenset({Act.FORWARD, Act.BACKWARD, Act.BACKWARD_INPUT, Act.BACKWARD_WEIGHT})
GRADIENT = frozenset({Act.BACKWARD, Act.BACKWARD_INPUT})
"""What makes the gradient of a stage's input, which the stage before waits for."""
SENDS = frozenset({Act.SEND_F, Act.SEND_B})
RECVS = frozenset({Act.RECV_F, Act.RECV_B})
WEIGHTS = frozenset({Act.UNSHARD, Act.RESHARD, Act.REDUCE_GRAD})

NONE = -1
"""The micro-batch of an action that has none, and the stage of an OVERLAP_F_B."""

_ACTION = re.compile(r"(\d+)([A-Z_]+?)(\d*)")
_OVERLAP = re.compile(r"\(([^()]*)\)([A-Z_]+)")
_MAX_DIGITS = 6
_NAMES = tuple(str(act) for act in Act)


class Action(NamedTuple):
    """One action; `parts` are those of an OVERLAP_F_B, which run one after the other."""

    act: Act
    stage: int
    batch: int = NONE
    parts: tuple[Action, ...] = ()

    def __str__(self) -> str:
        if self.parts:
            return f"({';'.join(map(str, self.parts))}){self.act}"
        return f"{self.stage}{self.act}{'' if self.batch == NONE else self.batch}"

    def atoms(self) -> tuple[Action, ...]:
        """The actions that this one consists of."""
        return self.parts or (self,)


def parse_action(token: str) -> Action:
    """Read one cell, without blanks around it; raises ValueError, which says what is wrong."""
    if token.startswith("("):
        return _overlap(token)
    match = _ACTION.fullmatch(token)
    if match is None:
        raise ValueError(f"`{_short(token)}` is no action; one looks like 2F0, 1SEND_F3, 0UNSHARD")
    stage, name, batch = match.groups()
    if name not in _NAMES or name == Act.OVERLAP:
        raise ValueError(f"`{_short(token)}`: there is no action `{_short(name)}`{_hint(name)}")
    if max(len(stage), len(batch)) > _MAX_DIGITS:
        raise ValueError(f"`{_short(token)}`: the number is too large")
    act = Act(name)
    if act in WEIGHTS and batch:
        raise ValueError(f"`{token}`: {name} has no micro-batch; write {stage}{name}")
    if act not in WEIGHTS and not batch:
        raise ValueError(f"`{token}`: {name} wants a micro-batch, as in {token}0")
    return Action(act, int(stage), int(batch) if batch else NONE)


def _overlap(token: str) -> Action:
    match = _OVERLAP.fullmatch(token)
    if match is None or match[2] != Act.OVERLAP:
        raise ValueError(f"`{_short(token)}`: write two actions as (2F4;5B1){Act.OVERLAP}")
    parts = tuple(parse_action(part.strip()) for part in match[1].split(";"))
    for part in parts:
        if part.act not in COMPUTE:
            raise ValueError(f"`{_short(token)}`: {part} cannot stand in an {Act.OVERLAP}")
    return Action(Act.OVERLAP, NONE, NONE, parts)


def _hint(name: str) -> str:
    near = nearest(name, _NAMES)
    return f"; did you mean `{near}`?" if near else f"; there are {', '.join(_NAMES)}"


def _short(token: str) -> str:
    return token if len(token) <= 40 else f"{token[:37]}..."
