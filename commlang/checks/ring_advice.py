"""What to write instead of a ring of waits, where its shape tells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from commlang.operations import Kind
from commlang.program.context import loop_variables

if TYPE_CHECKING:
    from commlang.checks.facts import Facts
    from commlang.checks.ring import Wait
    from commlang.program import Program


def suggest(facts: Facts, ring: list[Wait]) -> str | None:
    """What to write instead, where the shape of the ring tells."""
    program = facts.program
    kinds = [Kind(int(program.kind[w.waiting])) for w in ring]
    if any(kind.is_collective for kind in kinds):
        if all(kind.is_collective for kind in kinds):
            return "call the collectives of different groups in one order on all ranks"
        return "move the message to the same side of the collective on both ranks"
    row = ring[0].waiting
    rank = int(program.rank[row])
    behind = next((w.awaited for w in ring if int(program.rank[w.awaited]) == rank), None)
    if behind is None:
        return "put the messages that cross in one `parallel:`, so that all start before any ends"
    variables = loop_variables(program, [row, behind])
    if program.site[behind] == program.site[row]:
        if variables[row] != variables[behind]:
            return "let the ranks take these messages in one order"
        return "put the messages that cross in one `parallel:`, so that all start before any ends"
    joined = int(program.wait[row])
    if joined >= 0:
        return f"start `{program.text(behind)}` before the wait at {facts.place(joined)}"
    if variables[row] != variables[behind] or not adjacent(program, row, behind):
        return "let one rank of the ring do the later operation first, or post it with `async`"
    low, high = sorted((row, behind))
    if program.kind[low] == Kind.RECV and high > low + 1:
        return "the send may need what the recv brings: let one rank of the ring send first"
    others = {int(program.site[wait.waiting]) for wait in ring}
    alike = others <= {int(program.site[row]), int(program.site[behind])}
    return _in_parallel(facts, row, behind) + ("" if alike else "\nand so on the other ranks")


def adjacent(program: Program, row: int, behind: int) -> bool:
    """Whether nothing but local work stands between two rows of a rank, in one sequence."""
    low, high = sorted((row, behind))
    between = program.kind[low + 1 : high]
    local = (between >= Kind.COPY) & (between <= Kind.EXTERN)
    nest = program.nest[[low, high]]
    _, _, sequence = program.nests.look_up(nest)
    return bool(local.all() and nest[0] == nest[1] and (nest[0] < 0 or sequence[0]))


def _in_parallel(facts: Facts, row: int, behind: int) -> str:
    """Both ends of a rank in one block; into a temp, where they would use the same data."""
    program = facts.program
    rank = int(program.rank[row])
    lines = [f"put both ends of rank {rank} in one block, so that they start together:"]
    target = shared(program, row, behind)
    if target:
        lines.append(f"temp inbox: like {target}")
    lines.append("parallel:")
    for end in (row, behind):
        text = program.text(end)
        if target and program.kind[end] == Kind.RECV:
            text = text.replace(f"({target}", "(inbox", 1)
        lines.append(f"    {text}   # now at {facts.place(end)}")
    return "\n".join([*lines, f"inbox -> {target}"] if target else lines)


def shared(program: Program, row: int, behind: int) -> str:
    """What a recv writes, as it is written, if the other end uses elements of it."""
    ops = program.operands
    one, two = int(program.first[row]), int(program.first[behind])
    apart = (
        ops.buffer[one] != ops.buffer[two]
        or ops.offset[one] + ops.length[one] <= ops.offset[two]
        or ops.offset[two] + ops.length[two] <= ops.offset[one]
    )
    recv = next((r for r in (row, behind) if program.kind[r] == Kind.RECV), None)
    match = re.match(r"recv\(([\w.\[\] ]+?),", program.text(recv)) if recv is not None else None
    return "" if apart or match is None else match.group(1)
