"""What each rank does in the tests of the training examples; as in `executor_work`."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from importlib import import_module
from pathlib import Path
from unittest import mock

from tests.execute.executor_work import joined

EXAMPLES = Path(__file__).parents[2] / "examples"


def told(rank: int, size: int, path: Path, folder: str, *arguments: str) -> tuple[int, list[str]]:
    """The exit code of an example's `train.py` and the lines that it prints."""
    printed = io.StringIO()
    sys.path.insert(0, str(EXAMPLES / folder))  # as Python does for a script
    with joined(rank, size, path), contextlib.redirect_stdout(printed):
        code = import_module("train").main(list(arguments))
    return code, printed.getvalue().splitlines()


def pipeline(rank: int, size: int, path: Path) -> tuple[int, list[str]]:
    return told(rank, size, path, "pipeline_training", "--check", "--steps=2", "--layers=2")


def multi_node(rank: int, size: int, path: Path) -> tuple[int, list[str]]:
    with mock.patch.dict(os.environ, {"LOCAL_WORLD_SIZE": "1"}):
        return told(rank, size, path, "multi_node", "--check", "--steps=2")
