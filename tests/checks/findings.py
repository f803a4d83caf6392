"""Cases as data: `cases/*.txt` hold patterns, and below each what is said of it.

A case is a text between `---` lines: an optional `# world N` line (else 4), an optional line
`# backend NAME`, perhaps with an init (else what every backend honours), one `# select CODES` (else
what is told by default), statements (or whole patterns, one of them `main`), then its findings. A
finding is `=> line:column CODE message`, then its further places as `@ line:column text`, its notes
as `= note` and its help as `? help`; places count from the first line of the case. A case without
`=>` must be sound.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from commlang.checks import check_program
from commlang.checks.selection import DEFAULT, Selection
from commlang.errors import PatternError
from commlang.program import build
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.transports import RENDEZVOUS, Backend, NcclInit, Target

if TYPE_CHECKING:
    from pathlib import Path

    from commlang.diagnostics import Diagnostic

HEAD = "pattern main(x: float32[n], y: float32[n], z: float32[n, n], k = 2, n = 8):\n"
MARKS = ("=> ", "@ ", "= ", "? ")


def cases(folder: Path) -> list[object]:
    """Every case of a folder as a pytest parameter (text, expected lines)."""
    found: list[object] = []
    for path in sorted(folder.glob("*.txt")):
        blocks = re.split(r"^---\n", path.read_text("utf-8"), flags=re.MULTILINE)
        for number, block in enumerate(filter(str.strip, blocks), start=1):
            lines = block.strip("\n").split("\n")
            at = next((i for i, line in enumerate(lines) if line.startswith("=> ")), len(lines))
            text, expected = "\n".join(lines[:at]), lines[at:]
            found.append(pytest.param(text, expected, id=f"{path.stem}-{number}"))
    return found


def told(text: str) -> list[str]:
    """What is said of a case, in the lines that a case file holds."""
    world = re.match(r"# world (\d+)\n", text)
    named = re.search(r"^# backend (\w+)(?: (\w+))?$", text, re.MULTILINE)
    target = RENDEZVOUS
    if named:
        target = Target(Backend(named[1]), NcclInit(named[2] or "lazy"))
    chosen = re.search(r"^# select (\w+)$", text, re.MULTILINE)
    selection = Selection(select=(chosen[1],), ignore=()) if chosen else DEFAULT
    above, indent = 0, 0
    if "pattern main" not in text:
        body = "".join(f"    {line}\n" for line in text.split("\n"))
        text, above, indent = HEAD + body, 1, 4
    definition = load_module(Source(text + "\n", "case.cl")).symbols["main"]
    try:
        program = build(definition, int(world[1]) if world else 4)
        found = check_program(program, target, selection)
    except PatternError as error:
        found = list(error.diagnostics)
    return [line for finding in found for line in _lines(finding, above, indent)]


def _lines(finding: Diagnostic, above: int, indent: int) -> list[str]:
    places: list[str] = []
    for label in finding.labels:
        line, column = label.source.position(label.span.start)
        places.append(f"{line - above}:{column - indent}")
    first = places[0] if places else "-"
    lines = [f"=> {first} {finding.code} {finding.message}"]
    if finding.labels and finding.labels[0].text:
        lines.append(f"@ {first} {finding.labels[0].text}")
    pairs = zip(places[1:], finding.labels[1:], strict=True)
    lines += [f"@ {place} {label.text}" for place, label in pairs]
    for note in finding.notes:
        lines += [f"= {line}" for line in note.split("\n")]
    lines += [f"? {line}" for line in (finding.help or "").split("\n") if line]
    return lines
