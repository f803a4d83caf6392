"""Real gloo ranks for a scenario: a function of rank, size and a folder that they share."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.execute import executor_work as work
from tests.warm import CONTEXT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DEADLINE_S = 100


@pytest.fixture
def ranks(tmp_path: Path) -> Callable[[Callable[..., Any], int], list[Any]]:
    """Runs a scenario on so many ranks; returns what each of them returned."""

    def run(scenario: Callable[..., Any], size: int) -> list[Any]:
        pairs = [CONTEXT.Pipe(duplex=False) for _ in range(size)]
        answers = [sending for _, sending in pairs]
        leader = CONTEXT.Process(target=work.lead, args=(scenario, tmp_path, answers))
        deadline = time.monotonic() + DEADLINE_S
        leader.start()
        for answer in answers:
            answer.close()
        try:
            return [_answer(receiving, deadline) for receiving, _ in pairs]
        finally:
            leader.join(max(0.0, deadline - time.monotonic()))
            if leader.exitcode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(leader.pid or 0, signal.SIGKILL)
            leader.join()

    return run


def _answer(receiving: Any, deadline: float) -> Any:
    assert receiving.poll(max(0.0, deadline - time.monotonic())), "a rank hangs"
    kind, value = receiving.recv()
    assert kind == "ok", value
    return value
