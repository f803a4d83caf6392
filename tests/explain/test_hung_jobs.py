"""What `commlang explain` says of real jobs that hang: golden/JOB.txt, JOB.cl.txt with a pattern.

The frames of a dump name this checkout and lines of jobs.py; here those are left out.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.explain import jobs

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = Path(__file__).parent / "golden"
NAMES = sorted(job.__name__ for job in jobs.JOBS)
PATTERNS = sorted(path.stem for path in GOLDEN.glob("*.cl"))


def shown(text: str) -> str:
    """The text with places of jobs.py without folder and line."""
    return re.sub(r"/\S*/jobs\.py:\d+", "jobs.py:N", text)


@pytest.mark.parametrize("name", NAMES)
def test_a_job_is_explained(name: str, cli: Callable[..., Any], dumps: Callable[..., Path]) -> None:
    result = cli("explain", str(dumps(name)))
    assert shown(result.out) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert result.err == ""
    assert result.code == (0 if name == "well" else 1)


@pytest.mark.parametrize("name", PATTERNS)
def test_in_the_lines_of_the_pattern(
    name: str,
    cli: Callable[..., Any],
    dumps: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(GOLDEN)
    result = cli("explain", str(dumps(name)), f"{name}.cl")
    assert shown(result.out) == (GOLDEN / f"{name}.cl.txt").read_text(encoding="utf-8")
    assert (result.err, result.code) == ("", 1)


def test_every_job_has_its_text() -> None:
    assert sorted(path.stem for path in GOLDEN.glob("*.txt") if ".cl." not in path.name) == NAMES


def test_dumps_as_json_say_the_same_but_have_no_frames(
    cli: Callable[..., Any], dumps: Callable[..., Path]
) -> None:
    pickled = shown(cli("explain", str(dumps("missing"))).out)
    result = cli("explain", str(dumps("missing", as_json=True)))
    assert result.out == re.sub(
        r" at jobs.py:N in missing|^  ranks 0, 1, 3 wait at.*\n", "", pickled, flags=re.MULTILINE
    )
    assert result.code == 1


def test_a_rank_without_a_dump_is_named(
    cli: Callable[..., Any], dumps: Callable[..., Path], folder: Path
) -> None:
    for rank in (0, 1, 3):
        shutil.copy(dumps("missing") / f"nccl_trace_rank_{rank}", folder)
    result = cli("explain", ".")
    assert result.out.startswith(
        "rank 2 left no dump, and ranks 0, 1, 3 wait for it in all_reduce of float32[4] "
        "(call 3 on the world)\n"
    )
    assert "ranks 0, 1, 3 have issued it" in result.out
    assert result.code == 1


def test_the_rest_of_a_job_tells_less(
    cli: Callable[..., Any], dumps: Callable[..., Path], folder: Path
) -> None:
    """The one rank that has not come is still found, and what is lacking is said."""
    for rank in (1, 2):
        shutil.copy(dumps("missing") / f"nccl_trace_rank_{rank}", folder)
    result = cli("explain", "nccl_trace_rank_1", "nccl_trace_rank_2")
    assert result.out.startswith("rank 2 has not issued all_reduce of float32[4] (call 3 on the")
    assert "note: ranks 0, 3 left no dump; what is said is of the others" in result.out
    shutil.copy(dumps("well") / "nccl_trace_rank_0", folder / "well_0")
    result = cli("explain", "well_0", "--world", "2")
    assert result.out.startswith("rank 1 left no dump; in the others nothing waits\n")
    assert result.code == 1


def test_as_json(cli: Callable[..., Any], dumps: Callable[..., Path]) -> None:
    result = cli("explain", str(dumps("missing")), "--json")
    found = json.loads(result.out)
    assert result.code == 1
    assert (found["version"], found["ok"], found["world"]) == (1, False, 4)
    assert (found["ranks"], found["backends"], found["operations"]) == ([0, 1, 2, 3], ["gloo"], 11)
    (finding,) = found["findings"]
    assert (finding["kind"], finding["ranks"], finding["waiting"]) == ("missing", [2], [0, 1, 3])
    assert finding["headline"].startswith("rank 2 has not issued all_reduce")


def test_a_pattern_that_did_not_run(
    cli: Callable[..., Any], dumps: Callable[..., Path], folder: Path
) -> None:
    (folder / "other.cl").write_text(
        "pattern other(x: float32[4]):\n    all_reduce(x)\n    broadcast(x, src=0)\n"
    )
    result = cli("explain", str(dumps("well")), "other.cl")
    assert result.code == 0
    assert (
        "note: ranks 0 to 3 issued barrier (call 2 on the world) where the pattern has "
        "`broadcast(x, src=0)` (other.cl:3:5); is it the one that ran?" in result.out
    )
