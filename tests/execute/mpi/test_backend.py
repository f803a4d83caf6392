"""The backend through torch's public functions, on real ranks of MPI."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest

from tests.execute.mpi import ranks

if TYPE_CHECKING:
    from collections.abc import Callable

SCENARIOS = [
    name
    for name, found in inspect.getmembers(ranks, inspect.isfunction)
    if list(inspect.signature(found).parameters) == ["rank", "size"]
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "size",
    [pytest.param(2, marks=pytest.mark.slow), 3, pytest.param(4, marks=pytest.mark.slow)],
)
def test_scenarios(size: int, mpi_ranks: Callable[..., list[Any]]) -> None:
    assert len(SCENARIOS) == 20
    assert mpi_ranks(SCENARIOS, size) == [[None] * len(SCENARIOS)] * size
