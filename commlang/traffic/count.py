"""The traffic of a program: its messages, and its collectives by their algorithms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.operations import Kind
from commlang.traffic.algorithms import ALGORITHMS, usual
from commlang.traffic.calls import Lengths, calls_of
from commlang.traffic.table import collected, joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commlang.program.columns import Program
    from commlang.traffic.calls import Calls
    from commlang.traffic.flows import Algorithm
    from commlang.traffic.table import Traffic


def traffic(
    program: Program,
    algorithms: Mapping[str, str] | None = None,
    *,
    backend: str | None = None,
) -> Traffic:
    """Who sends how many bytes to whom when a program runs.

    `algorithms` names, by operation, the algorithm of its collectives, as in
    `{"all_reduce": "tree"}`; the others run by the one that `backend` ("gloo", "nccl", None for
    any) usually takes (`commlang.traffic.algorithms`). Of a message the sender's size counts. The
    program is taken to be free of errors. Raises UsageError for an algorithm that is not known
    and for an all_to_all among too many ranks.
    """
    chosen = usual(backend, algorithms)
    lengths = Lengths.of(program)
    parts = [_messages(program, lengths)]
    present = set(np.unique(program.site_kind).tolist())
    for kind, name in chosen.items():
        if kind in present:
            calls = calls_of(program, kind, lengths)
            parts += _collectives(calls, ALGORITHMS[kind][name])
    return joined(program.world, parts, program.site)


def _messages(program: Program, lengths: Lengths) -> Traffic:
    row = np.flatnonzero(program.kind == Kind.SEND)
    site = program.site[row]
    return collected(
        program.world,
        program.rank[row].astype(np.int64),
        program.peer[row].astype(np.int64),
        site,
        lengths.each[program.first[row]] * lengths.itemsize[site],
        np.ones_like(row),
        row,
    )


def _collectives(calls: Calls, algorithm: Algorithm) -> Iterator[Traffic]:
    """The traffic of each block of flows of an algorithm."""
    if not len(calls):
        return
    program = calls.program
    for index, place, size, messages in algorithm(calls):
        row, times = calls.row[index], calls.times[index]
        yield collected(
            program.world,
            program.rank[row].astype(np.int64),
            np.asarray(program.groups.member(program.group[row], place), dtype=np.int64),
            program.site[row],
            size * times,
            messages * times,
            row,
        )
