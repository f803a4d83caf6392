"""Dumps of jobs that hang, each job run once for all tests that look at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import cli, folder
from tests.explain import jobs
from tests.warm import CONTEXT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["cli", "dumps", "folder"]
DEADLINE_S = 100


@pytest.fixture(scope="session")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`dumps("missing")` is the folder with the dumps of that job's real gloo ranks."""
    known: dict[tuple[str, bool], Path] = {}

    def of(name: str, *, as_json: bool = False) -> Path:
        key = (name, as_json)
        if key not in known:
            folder = tmp_path_factory.mktemp(name)
            known[key] = folder / "dumps"
            _run(name, folder, as_json)
        return known[key]

    return of


def _run(name: str, folder: Path, as_json: bool) -> None:
    processes = [
        CONTEXT.Process(target=jobs.main, args=(name, rank, folder, as_json))
        for rank in range(jobs.WORLD)
    ]
    for process in processes:
        process.start()
    try:
        for process in processes:
            process.join(DEADLINE_S)
    finally:
        for process in processes:
            process.kill()
            process.join()
    assert [process.exitcode for process in processes] == [0] * jobs.WORLD
