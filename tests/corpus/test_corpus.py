"""Faults from public reports and from MPI correctness suites, each written as a pattern.

A file says in its first lines where the case comes from, for how many ranks it stands and what
must be found: `clean`, or `CODE @ line` for each finding (`CODE @ 6-7` where either line of a
block is right). `expect` stands for every target; `nccl` (communicators made at first use),
`nccl-eager` and `mpi` say what is found there instead. Whether a backend supports an operation at
all (CL26) is no part of the cases. `advice` and `advice-nccl` say what advice on speed is given, on
NCCL for the latter; of files without them that is not looked at. `impossible.md` lists the cases
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
ADVICE = {"advice": RENDEZVOUS, "advice-nccl": Target(Backend.NCCL)}


def _header(text: str, name: str) -> str | None:
    match = re.search(rf"^# {name}: (.*)$", text, re.MULTILINE)
    return match[1] if match else None


def _found(
    source: Source, target: Target, selection: Selection = SELECTION
) -> list[tuple[str, int]]:
    world = _header(source.text, "world")
    assert world
    try:
        program = build(load_module(source).symbols["main"], int(world))
        findings = check_program(program, target, selection)
    except PatternError as error:
        findings = list(error.diagnostics)
    places = [(d.code, d.labels[0].source.position(d.labels[0].span.start)[0]) for d in findings]
    return sorted(places)


def _expect(expected: str, found: list[tuple[str, int]]) -> None:
    wanted = [
        (code, int(first), int(last or first))
        for code, first, last in re.findall(r"(CL\d+) @ (\d+)(?:-(\d+))?", expected)
    ]
    assert (expected == "clean") == (not wanted)
    assert len(found) == len(wanted), found
    for (code, line), (other, first, last) in zip(found, sorted(wanted), strict=True):
        assert code == other
        assert first <= line <= last


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_case_is_found_where_it_is_expected(path: Path, target: str) -> None:
    source = Source.read(path)
    general = _header(source.text, "expect")
    assert general
    expect = _header(source.text, target) or general
    _expect(expect, _found(source, TARGETS[target]))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_slow_is_told_where_it_is_expected(path: Path) -> None:
    source = Source.read(path)
    for name, target in ADVICE.items():
        expect = _header(source.text, name)
        if expect is not None:
            _expect(expect, _found(source, target, Selection(select=("CL4",), ignore=())))


def test_every_case_is_a_pattern_or_impossible() -> None:
    text = (FOLDER / "impossible.md").read_text()
    impossible = set(re.findall(r"^\| ([BS]\d+) \|", text, re.MULTILINE))
    written = {path.stem.partition("_")[0] for path in FILES}
    assert len(written | impossible) == 93
    assert not written & impossible
