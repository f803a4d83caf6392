"""The matrix as text: a table of sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.draw.matrix import make_matrix
from commlang.draw.words import bytes_text

if TYPE_CHECKING:
    from commlang.draw.subject import Subject

MOST, BLOCKS = 12, 8
"""Rows of a table, and blocks of ranks where ranks are more."""


def text(subject: Subject) -> str:
    """The matrix of a subject, `·` where nothing is sent."""
    matrix = make_matrix(subject, MOST, BLOCKS)
    names = [matrix.name(at) for at in range(matrix.size)]
    body = [[bytes_text(size) if size else "·" for size in row] for row in matrix.bytes.tolist()]
    sent = [bytes_text(size) for size in matrix.bytes.sum(axis=1).tolist()]
    received = [bytes_text(size) for size in matrix.bytes.sum(axis=0).tolist()]
    rows = [
        ["from \\ to", *names, "sends"],
        *([name, *row, out] for name, row, out in zip(names, body, sent, strict=True)),
        ["receives", *received, ""],
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    notes = ["", matrix.algorithms] if matrix.algorithms else []
    return "\n".join([subject.title, matrix.told(), "", *lines, *notes, ""])
