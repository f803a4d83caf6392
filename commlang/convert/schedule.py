"""A torch pipeline schedule: a row of actions for each rank, read from a CSV file."""

from __future__ import annotations

import sys
from array import array
from dataclasses import field
from pathlib import Path

from commlang.convert.actions import COMPUTE, SENDS, Act, Action, parse_action
from commlang.errors import UsageError
from commlang.records import record

MAX_BYTES = 32 << 20
MAX_ACTIONS = 2_000_000
"""What is read at most: 2,000 ranks with 1,000 actions each."""


@record
class Row:
    """What one rank does, in order.

    `columns[i]` is where action i stands in its line, from 1; empty if the row was not read.
    """

    actions: list[Action]
    columns: array[int] = field(default_factory=lambda: array("L"))


@record
class Schedule:
    """The rows of ranks 0, 1, … and how many stages and micro-batches they name."""

    path: str
    rows: list[Row]
    stages: int
    batches: int

    def where(self, rank: int, index: int = 0) -> str:
        """`path:line:column` of an action; a line stands for a rank."""
        columns = self.rows[rank].columns
        return f"{self.path}:{rank + 1}:{columns[index] if index < len(columns) else 1}"

    def communicates(self) -> bool:
        """Whether the sends are written out: what torch calls `compute_comms`."""
        return any(action.act in SENDS for row in self.rows for action in row.actions)

    def uses(self, *acts: Act) -> bool:
        """Whether any of these occurs."""
        atoms = (atom for row in self.rows for action in row.actions for atom in action.atoms())
        return any(atom.act in acts for atom in atoms)


def read_schedule(path: str) -> Schedule:
    """Read a file, or standard input for `-`; raises UsageError that names the place."""
    try:
        if path == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(path).open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read {path}: {reason}") from None
    return parse_schedule(data, "<stdin>" if path == "-" else path)


def parse_schedule(data: bytes, path: str) -> Schedule:
    """A schedule from the bytes of its file.

    A line is a rank, a comma ends an action, an empty cell is a pause. Quotes around a cell and
    square brackets around a line, as torch prints one, are passed over.
    """
    if len(data) > MAX_BYTES or data.count(b",") + data.count(b"\n") > MAX_ACTIONS:
        raise UsageError(f"{path} has more than {MAX_ACTIONS:,} actions; not a schedule")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}:{line}: byte {data[error.start]:#04x} is not UTF-8") from None
    lines = text.replace("\r\n", "\n").rstrip().split("\n")
    if lines == [""]:
        raise UsageError(f"{path} is empty; a schedule has a row of actions for each rank")
    rows = [_row(line, f"{path}:{number}") for number, line in enumerate(lines, start=1)]
    atoms = [atom for row in rows for action in row.actions for atom in action.atoms()]
    stages = 1 + max(atom.stage for atom in atoms)
    batches = 1 + max(atom.batch for atom in atoms)
    if not any(atom.act in COMPUTE for atom in atoms):
        raise UsageError(f"{path}: no rank computes anything; a schedule has actions such as 0F0")
    return Schedule(path, rows, stages, batches)


def _row(line: str, where: str) -> Row:
    row = Row([])
    offset = 0
    for cell in line.split(","):
        token = cell.strip(' \t"[]')
        if token:
            column = offset + cell.index(token) + 1
            try:
                row.actions.append(parse_action(token))
            except ValueError as error:
                raise UsageError(f"{where}:{column}: {error}") from None
            row.columns.append(column)
        offset += len(cell) + 1
    if not row.actions:
        raise UsageError(f"{where}:1: this rank does nothing; each line is the row of one rank")
    return row
