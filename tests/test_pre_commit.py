"""The hooks for pre-commit: they name commands that there are, which do what pre-commit expects."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KEYS = {"id", "name", "description", "entry", "language", "files", "types", "require_serial"}
FAULTY = "pattern main(x: float32[8]):\n  h=async all_reduce(x)\n"


def hooks() -> list[dict[str, str]]:
    """The hooks, read as the flat YAML that they are: a list of maps of plain scalars."""
    found: list[dict[str, str]] = []
    for line in (ROOT / ".pre-commit-hooks.yaml").read_text("utf-8").splitlines():
        match = re.fullmatch(r"(- |  )([a-z_]+): (.+)", line)
        assert match, f"not flat YAML: {line}"
        if match[1] == "- ":
            found.append({})
        assert not re.search(r": |\s#|^[&*!|>%@`\"']", match[3]), f"not a plain scalar: {line}"
        found[-1][match[2]] = match[3]
    return found


HOOKS = {hook["id"]: hook for hook in hooks()}


def test_there_are_two_hooks_with_all_that_pre_commit_needs() -> None:
    assert list(HOOKS) == ["commlang-lint", "commlang-fmt"]
    for hook in HOOKS.values():
        assert set(hook) == KEYS
        assert (hook["language"], hook["types"]) == ("python", "[text]")
        assert [
            n for n in ("a.cl", "b/c.cl", "a.cl.txt", "acl") if re.search(hook["files"], n)
        ] == [
            "a.cl",
            "b/c.cl",
        ]


@pytest.mark.parametrize("name", HOOKS)
def test_the_entry_runs_and_fails_or_changes_the_file(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.cl").write_text(FAULTY)
    program, *arguments = HOOKS[name]["entry"].split()
    assert program == "commlang"
    done = subprocess.run(
        [sys.executable, "-m", "commlang", *arguments, "a.cl"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if name == "commlang-lint":
        assert (done.returncode, done.stderr) == (1, "")
        assert "error[CL206]" in done.stdout
    else:
        assert (done.returncode, done.stderr) == (0, "formatted 1 of 1 file\n")
        assert (tmp_path / "a.cl").read_text().endswith("    h = async all_reduce(x)\n")
