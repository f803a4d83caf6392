"""The patterns of examples/parallelism: sound, on NCCL too, and proven to do what they promise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commlang.cli import main

FOLDER = Path(__file__).parents[2] / "examples" / "parallelism"
PATTERNS = sorted(str(path) for path in FOLDER.glob("*.cl"))


def test_there_is_one_for_each_way_to_spread_a_step() -> None:
    names = [Path(path).stem for path in PATTERNS]
    assert names == ["ddp", "pipeline", "tensor", "zero2", "zero3"]


@pytest.mark.parametrize(
    "options",
    [
        ("--backend", "nccl"),
        # The tables of docs/ddp-vs-fsdp.md say it too, but for warnings.
        pytest.param(("--preset", "gpt_7b"), marks=pytest.mark.slow),
    ],
)
def test_nothing_is_found_in_them(
    options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["lint", *PATTERNS, *options, "--strict"])
    out, err = capsys.readouterr()
    assert (code, out) == (0, "checked 8 patterns in 5 files: no findings\n"), err


@pytest.mark.slow
def test_they_run(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["compare", *PATTERNS, "--measure", "--format", "json"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    found = {one["label"]: one["measured"] for one in json.loads(out)["patterns"]}
    assert {label for label, run in found.items() if run["seconds"] > 0} == {
        "ddp",
        "pipeline",
        "tensor",
        "zero2",
        "zero3",
    }


def test_they_are_formatted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fmt", "--check", *PATTERNS]) == 0
