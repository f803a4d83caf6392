"""What docs/ddp-vs-fsdp.md and docs/compare.md show is what the commands print, to the digit.

The commands of all pages are run too, by tests/test_docs_commands.py, which lets figures differ.
`python tests/compare/test_docs.py` writes the pages anew.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from commlang.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "compare.md", ROOT / "docs" / "ddp-vs-fsdp.md"]
BLOCK = re.compile(
    r"(?<=^```console\n)\$ commlang (compare .*)\n((?:.*\n)*?)(?=^```$)", re.MULTILINE
)
LARGE = "--world 16"
"""In the command whose proofs take half a minute."""


def blocks(page: Path) -> list[tuple[str, str]]:
    """Each `commlang compare` of a page with what is shown under it."""
    return [(m[1], m[2]) for m in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def words(command: str) -> list[str]:
    """The arguments, with `{a,b}` written out as a shell does."""
    found: list[str] = []
    for word in shlex.split(command):
        head, brace, rest = word.partition("{")
        inner, _, tail = rest.partition("}")
        found += [head + part + tail for part in inner.split(",")] if brace else [word]
    return found


SHOWN = [
    pytest.param(
        command,
        shown,
        id=f"{page.stem}-{n}",
        marks=[pytest.mark.slow] if LARGE in command else [],
    )
    for page in PAGES
    for n, (command, shown) in enumerate(blocks(page))
]


def test_there_are_three_tables() -> None:
    assert len(SHOWN) == 3


@pytest.mark.parametrize(("command", "shown"), SHOWN)
def test_a_table_is_what_its_command_prints(
    command: str, shown: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(words(command)) == 0
    assert capsys.readouterr().out == shown


def rewrite(page: Path) -> None:
    def printed(match: re.Match[str]) -> str:
        argv = [sys.executable, "-m", "commlang", *words(match[1])]
        run = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
        return f"$ commlang {match[1]}\n{run.stdout}"

    page.write_text(BLOCK.sub(printed, page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    for page in PAGES:
        rewrite(page)
