"""A program that was made from a schedule, told in torch's words again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.convert.steps import EXTERNS
from commlang.operations import Kind
from commlang.program import build
from commlang.resolve.modules import load_module
from commlang.source import Source

if TYPE_CHECKING:
    from commlang.convert.schedule import Schedule
    from commlang.program import Program

MESSAGES = {(Kind.SEND, "y"): "SEND_F", (Kind.RECV, "x"): "RECV_F"}
MESSAGES |= {(Kind.SEND, "dx"): "SEND_B", (Kind.RECV, "dy"): "RECV_B"}
ACTS = {name: str(act) for act, name in EXTERNS.items()}
SIZE = 256


def program_of(text: str, world: int) -> Program:
    module = load_module(Source(text))
    (name,) = module.exported
    return build(module.symbols[name], world)


def told(program: Program, schedule: Schedule) -> list[list[str]]:
    """What each rank does but wait and copy: `2F0`, `2SEND_F0`."""
    return [
        [word for row in program.rows_of(rank) if (word := _word(program, row, schedule.batches))]
        for rank in range(program.world)
    ]


def written(schedule: Schedule) -> list[list[str]]:
    """What the rows of a schedule say, with each action that is made of two taken apart."""
    return [
        [str(atom) for action in row.actions for atom in action.atoms()] for row in schedule.rows
    ]


def _word(program: Program, row: int, batches: int) -> str | None:
    site = program.site_of(row)
    if site.kind is Kind.EXTERN:
        given = program.arguments_of(row)
        return f"{given['stage']}{ACTS[site.name]}{given.get('m', '')}"
    if not site.kind.is_message:
        return None
    first = int(program.first[row])
    buffer = program.buffer_of(int(program.operands.buffer[first])).name
    stage, batch = divmod(int(program.operands.offset[first]) // SIZE, batches)
    return f"{stage}{MESSAGES[site.kind, buffer]}{batch}"
