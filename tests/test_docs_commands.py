"""Each command that README.md and docs/ show is run, and must print what is shown under it.

A fenced ```console block holds commands (`$ …`) and lines of their output, in order; `...` stands
for anything, and times and rates may differ. `<!-- exit: 1 -->` right above the fence names the
exit code of the block's last command. `<!-- file: NAME -->` above a fence puts that block into a
file, which the commands below find; a file that the repository has too must read as it does there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
# For a machine that does much else: the longest takes 15 s of a quiet CPU.
DEADLINE_S = 300
FOLDERS = ("docs", "examples", "patterns")

BLOCK = re.compile(
    r"(?:^<!-- (?P<key>exit|file): (?P<value>\S+) -->\n)?"
    r"^```(?P<kind>\w*)[^\n]*\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
# What sets up, tests or checks the project: `.ci/run` runs these; a test must not run all tests.
SETUP = re.compile(r"python3 -m venv |\.venv/bin/pip |\.venv/bin/python -m pytest|\.ci/|git ")
UNIT = r"\s?(?:[nuµm]?s|[KMGT]?i?B/s)\b"
MEASURED = re.compile(rf"(?<![\w.])(?:\d+\.\d+(?![.\d])(?:{UNIT})?|\d+{UNIT})")


@dataclass(frozen=True, slots=True)
class Block:
    where: str
    body: str
    exit_code: int
    files: dict[str, str]

    def commands(self) -> list[tuple[str, list[str]]]:
        """Each command with the output lines shown under it."""
        pieces = re.split(r"^\$ ", self.body, flags=re.MULTILINE)
        assert pieces[0] == "", f"{self.where}: a console block starts with `$ `"
        lines = [piece.splitlines() for piece in pieces[1:]]
        return [(command, [line for line in shown if line.strip()]) for command, *shown in lines]


def blocks(name: str, text: str) -> list[Block]:
    """The console blocks of a document, each with the files shown above it."""
    files: dict[str, str] = {}
    found: list[Block] = []
    for match in BLOCK.finditer(text):
        body, key, value = match["body"], match["key"], match["value"]
        if key == "file":
            files = files | {value: body}
        if match["kind"] == "console":
            line = text.count("\n", 0, match.start("body")) + 1
            exit_code = int(value) if key == "exit" else 0
            found.append(Block(f"{name}:{line}", body, exit_code, files))
    return found


def runnable(command: str) -> str:
    """The command less its setup, which is said; and for any environment, not only `.venv`."""
    parts = command.split(" && ")
    for part in filter(SETUP.match, parts):
        print(f"left to .ci/run: {part}")
    return " && ".join(part for part in parts if not SETUP.match(part)).replace(".venv/bin/", "")


def normal(line: str) -> str:
    return " ".join(MEASURED.sub("<measured>", line).split())


def missing(shown: list[str], printed: list[str]) -> str | None:
    """The first shown line that is not printed after the lines shown above it."""
    rest = iter([normal(line) for line in printed])
    for line in shown:
        pattern = re.escape(normal(line)).replace(re.escape("..."), ".*")
        if not any(re.fullmatch(pattern, candidate) for candidate in rest):
            return line
    return None


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run in bash, with `commlang` and `python` those of the code and interpreter under test."""
    paths = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    script = f'commlang() {{ python -m commlang "$@"; }}\nset -o pipefail\n{command}'
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=os.environ | paths | {"COLUMNS": "100", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A place as the repository's root looks to a reader, which commands may write to."""
    for name in FOLDERS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name)
    return tmp_path


ALL = [
    block
    for path in DOCUMENTS
    for block in blocks(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
]
LONG = ("docs/torch-pipelines.md", "docs/training.md", "docs/ddp-vs-fsdp.md")
"""Pages that judge all of torch's schedules, or train on many ranks: a matter of minutes.

The tables of the last are also compared by tests/compare/test_docs.py.
"""
PARAMETERS = [
    pytest.param(
        block,
        id=block.where,
        marks=[pytest.mark.slow] if block.where.startswith(LONG) else [],
    )
    for block in ALL
]


@pytest.mark.timeout(2 * DEADLINE_S)
@pytest.mark.parametrize("block", PARAMETERS)
def test_commands_do_what_is_shown(block: Block, folder: Path) -> None:
    for name, text in block.files.items():
        if (folder / name).exists():
            assert text == (folder / name).read_text(encoding="utf-8"), f"{name} reads otherwise"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")

    commands = [(runnable(command), shown) for command, shown in block.commands()]
    if not any(command for command, _ in commands):
        pytest.skip("sets up or tests the project, which .ci/run does")
    for at, (command, shown) in enumerate(commands, start=1):
        result = run(command, folder)
        told = f"{block.where}: $ {command}\n{result.stdout}"
        assert result.returncode == (block.exit_code if at == len(commands) else 0), told
        line = missing(shown, result.stdout.splitlines())
        assert line is None, f"not printed: {line}\n{told}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_no_command_hides_in_a_block_that_is_not_run(path: Path) -> None:
    for match in BLOCK.finditer(path.read_text(encoding="utf-8")):
        if match["kind"] != "console":
            assert match["kind"] not in {"bash", "sh", "shell"}, "fence commands as ```console"
            assert not re.search(r"^\$ ", match["body"], re.MULTILINE), match["body"]


def test_shown_output_may_differ_in_what_is_measured_only() -> None:
    printed = ["all_reduce  calls 3  1.25 ms  0.8 GB/s  0.1", "ring.cl:4:9 send", "done in 12 ms"]
    assert missing(["all_reduce calls 3 7.5 ms 11.0 GB/s 2.5", "done in 3 s"], printed) is None
    assert missing(["ring.cl:4:9 ...", "..."], printed) is None
    assert missing(["ring.cl:4:8 send"], printed) == "ring.cl:4:8 send"
    assert missing(["all_reduce calls 4 1.25 ms 0.8 GB/s 0.1"], printed) is not None
    assert missing(["done in 12 ms", "ring.cl:4:9 send"], printed) == "ring.cl:4:9 send"


def test_a_document_is_cut_into_commands() -> None:
    shown = "<!-- file: a.cl -->\n```\nx\n```\n"
    text = shown + "<!-- exit: 1 -->\n```console\n$ lint a.cl\nbad\n$ b\n```\n"
    (block,) = blocks("d.md", text)
    assert block.commands() == [("lint a.cl", ["bad"]), ("b", [])]
    assert (block.where, block.exit_code, block.files) == ("d.md:7", 1, {"a.cl": "x\n"})
    assert runnable("python3 -m venv .venv && .venv/bin/commlang run a.cl") == "commlang run a.cl"
    assert runnable("python3 -m venv .venv && .venv/bin/python -m pytest -q") == ""
