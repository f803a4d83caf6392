"""Real ranks of MPI for a scenario: a function of this rank's context, started by mpirun."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from commlang.execute.mpi.launch import launch_mpi
from commlang.execute.options import LaunchOptions
from tests.execute.mpi import ranks as scenarios

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="session")
def mpi_ranks() -> Callable[..., list[Any]]:
    """Runs scenarios, by name, on so many ranks of one job; returns each rank's answers."""

    def run(names: list[str], size: int) -> list[Any]:
        options = LaunchOptions(nproc_per_node=size)
        return launch_mpi(scenarios.play, (names,), options, timeout=60.0)

    return run
