"""What the actions of a rank's host are called, and how many bytes they move."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.operations import Kind
from commlang.schedule.linear import Act

if TYPE_CHECKING:
    from commlang.program import Program
    from commlang.schedule.linear import Action


def action_text(program: Program, action: Action) -> str:
    """The statements of an action, ` | ` between those that are one; `end of …` for a join."""
    if action.act is Act.JOIN:
        text = program.text(action.row)
        return text if text.startswith("wait") else f"end of {text}"
    return " | ".join(dict.fromkeys(program.text(row) for row in action.rows or (action.row,)))


def action_operation(program: Program, action: Action) -> str:
    """The names of an action's operations, `+` between those that are one."""
    if action.act is Act.JOIN:
        return "wait"
    return "+".join(dict.fromkeys(program.site_of(row).name for row in action.rows))


def action_size(program: Program, action: Action) -> int:
    """The bytes of a call: of a collective its larger side, of messages those sent or received.

    A rank that both sends and receives counts what it sends. A join moves nothing of its own.
    """
    if action.act is Act.JOIN:
        return 0
    sent = received = other = 0
    for row in action.rows:
        first, count = int(program.first[row]), int(program.count[row])
        site = program.site_of(row)
        itemsize = site.dtype.itemsize if site.dtype else 0
        lengths: list[int] = program.operands.length[first : first + count].tolist()
        if site.kind is Kind.SEND:
            sent += sum(lengths) * itemsize
        elif site.kind is Kind.RECV:
            received += sum(lengths) * itemsize
        elif site.kind.is_collective:
            other += _collective_size(site.kind, lengths) * itemsize
        else:
            other += max(lengths, default=0) * itemsize
    return other + (sent or received)


def _collective_size(kind: Kind, lengths: list[int]) -> int:
    if kind is Kind.ALL_TO_ALL:
        return sum(lengths) // 2
    if len(lengths) < 2:
        return sum(lengths)
    own = lengths[-1] if kind in (Kind.GATHER, Kind.ALL_GATHER) else lengths[0]
    return sum(lengths) - own
