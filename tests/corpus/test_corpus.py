"""Faults from public reports and from MPI correctness suites, each written as a pattern.

A file says in its first lines where the case comes from, for how many ranks it stands and what
must be found: `clean`, or `CODE @ line` for each finding (`CODE @ 6-7` where either line of a
block is right). `expect` stands for every target; `nccl` (communicators made at first use),
`nccl-eager` and `mpi` say what is found there instead. Whether a backend supports an operation at
all (CL26) is no part of the cases. `later.md` lists the cases that no rule decides yet, and those
that the language has made impossible.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from commlang.checks import check_program
from commlang.checks.selection import Selection
from commlang.errors import PatternError
from commlang.program import build
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.transports import RENDEZVOUS, Backend, NcclInit, Target

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.cl"))


TARGETS = {
    "expect": RENDEZVOUS,
    "gloo": Target(Backend.GLOO),
    "nccl": Target(Backend.NCCL, NcclInit.LAZY),
    "nccl-eager": Target(Backend.NCCL, NcclInit.EAGER),
    "mpi": Target(Backend.MPI),
}
SELECTION = Selection(ignore=("CL26", "CL4"), select=("ALL", "CL265"))


def _header(text: str, name: str) -> str | None:
    match = re.search(rf"^# {name}: (.*)$", text, re.MULTILINE)
    return match[1] if match else None


def _found(source: Source, world: int, target: Target) -> list[tuple[str, int]]:
    definition = load_module(source).symbols["main"]
    try:
        findings = check_program(build(definition, world), target, SELECTION)
    except PatternError as error:
        findings = list(error.diagnostics)
    places = [(d.code, d.labels[0].source.position(d.labels[0].span.start)[0]) for d in findings]
    return sorted(places)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_case_is_found_where_it_is_expected(path: Path, target: str) -> None:
    source = Source.read(path)
    world, general = _header(source.text, "world"), _header(source.text, "expect")
    assert world
    assert general
    expect = _header(source.text, target) or general
    found = _found(source, int(world), TARGETS[target])
    if expect == "clean":
        assert found == []
        return
    wanted = [
        (code, int(first), int(last or first))
        for code, first, last in re.findall(r"(CL\d+) @ (\d+)(?:-(\d+))?", expect)
    ]
    assert len(found) == len(wanted), found
    for (code, line), (other, first, last) in zip(found, sorted(wanted), strict=True):
        assert code == other
        assert first <= line <= last


def test_every_case_is_a_pattern_or_has_a_reason_to_wait() -> None:
    later = set(re.findall(r"^\| ([BS]\d+) \|", (FOLDER / "later.md").read_text(), re.MULTILINE))
    written = {path.stem.partition("_")[0] for path in FILES}
    assert len(written | later) == 93
    assert not written & later
