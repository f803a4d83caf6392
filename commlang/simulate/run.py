"""Which form of the engine does the work, and the columns that it works on."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from commlang.errors import UsageError
from commlang.simulate.kernel import Clock, State, walk

if TYPE_CHECKING:
    from commlang.simulate.kernel import Costs, Sharing
    from commlang.simulate.wiring import Wiring

Engine = Literal["auto", "numba", "numpy", "python"]

SMALL = 100_000
"""Rows up to which loading numba takes longer than doing without."""


def blank(wiring: Wiring) -> Clock:
    """A clock before anything has happened."""
    nan = np.nan
    return Clock(
        np.zeros(wiring.points),
        np.full(wiring.points, -1, dtype=np.int32),
        np.full(len(wiring.start), nan),
        np.full(len(wiring.start), nan),
        np.full(len(wiring.send), nan),
        np.zeros(len(wiring.before)),
    )


def run(wiring: Wiring, costs: Costs, sharing: Sharing, engine: Engine = "auto") -> Clock:
    """The clock of a program; raises UsageError if numba is asked for and not there."""
    engine = choose(engine, len(wiring.start))
    if engine == "numba":
        from commlang.simulate.compiled import compiled

        clock = blank(wiring)
        compiled(walk)(wiring, costs, sharing, clock, state_of(wiring, costs, sharing))
        return clock
    if engine == "numpy" and not sharing.on and not len(costs.eager):
        from commlang.simulate.levels import by_levels

        clock = by_levels(wiring, costs)
        if clock is not None:
            return clock
    return _interpreted(wiring, costs, sharing)


def choose(engine: Engine, rows: int) -> Engine:
    """The form that is asked for, or fastest for so many rows.

    Raises UsageError for numba where it is not, and for what is no engine.
    """
    if engine not in get_args(Engine):
        raise UsageError(f"`{engine}` is no engine; there are {', '.join(get_args(Engine))}")
    if engine == "numba" and not has_numba():
        raise UsageError("numba is not installed: `pip install 'commlang[fast]'`")
    if engine != "auto":
        return engine
    if rows <= SMALL:
        return "python"
    return "numba" if has_numba() else "numpy"


@cache
def has_numba() -> bool:
    """Whether the extra `fast` is installed."""
    from importlib.util import find_spec

    return find_spec("numba") is not None


def _interpreted(wiring: Wiring, costs: Costs, sharing: Sharing) -> Clock:
    """The kernel as Python, on lists."""
    clock = blank(wiring)
    found = _lists(clock)
    state = _lists(state_of(wiring, costs, sharing))
    walk(_lists(wiring), _lists(costs), _lists(sharing), found, state)
    return Clock(*(np.array(f, dtype=c.dtype) for f, c in zip(found, clock, strict=True)))


def state_of(wiring: Wiring, costs: Costs, sharing: Sharing) -> State:
    """The engine's state at the start."""
    messages, sizes = len(wiring.send), np.diff(wiring.first)
    return State(
        pending=wiring.pending.copy(),
        waiting=sizes,
        ready=np.zeros(wiring.points, dtype=np.int64),
        happened=np.zeros(int(sizes.max(initial=0)) + 4, dtype=np.int64),
        free=np.zeros(len(sharing.pace)),
        delay=np.zeros(messages if sharing.on else 0),
        landed=np.full(messages if len(costs.eager) else 0, np.nan),
    )


def _lists(columns: Any) -> Any:
    return columns._make(c.tolist() if isinstance(c, np.ndarray) else c for c in columns)
