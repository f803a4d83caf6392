"""Real gloo ranks for a scenario: a function of rank, size and a folder that they share."""

from __future__ import annotations

import multiprocessing
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.execute import executor_work as work

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# One server imports torch once; each rank is forked from it, before it has any thread.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["torch.distributed", "numpy", "pydantic", "lark"])
DEADLINE_S = 100


@pytest.fixture
def ranks(tmp_path: Path) -> Callable[[Callable[..., Any], int], list[Any]]:
    """Runs a scenario on so many ranks; returns what each of them returned."""

    def run(scenario: Callable[..., Any], size: int) -> list[Any]:
        pairs = [CONTEXT.Pipe(duplex=False) for _ in range(size)]
        processes = [
            CONTEXT.Process(target=work.main, args=(scenario, rank, size, tmp_path, sending))
            for rank, (_, sending) in enumerate(pairs)
        ]
        deadline = time.monotonic() + DEADLINE_S
        for process in processes:
            process.start()
        try:
            return [_answer(receiving, deadline) for receiving, _ in pairs]
        finally:
            for process in processes:
                process.join(max(0.0, deadline - time.monotonic()))
                process.kill()  # ours, and over by now unless it hangs
                process.join()

    return run


def _answer(receiving: Any, deadline: float) -> Any:
    assert receiving.poll(max(0.0, deadline - time.monotonic())), "a rank hangs"
    kind, value = receiving.recv()
    assert kind == "ok", value
    return value
