"""The patterns of DDP and FSDP2 against what torch's own issued, recorded from a small GPT."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commlang.operations import Kind
from commlang.program import Program, build
from commlang.verify import find_pattern, parse_settings

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "parallelism"
RECORDED = json.loads((FOLDER / "recorded.json").read_text(encoding="utf-8"))["recorded"]

WORLD = 4
SIZES = {"layers": 3, "hidden": 32, "length": 16, "vocab": 66, "batch": 8}
"""Those of model.py, whose batch of 2 is one rank's."""
FLOAT32 = SIZES | parse_settings(("dtype=float32", "saved=68"))
MASKS = 3 * 16 * 16

Call = tuple[str, str, int, tuple[int, ...], str, int]
"""Operation, dtype, elements that go in, ranks, reduce op and root."""


def recorded(name: str, phase: str) -> list[Call]:
    return [
        (
            one["operation"],
            one["dtype"],
            one["elements"],
            tuple(one["group"]),
            one.get("op", "").lower(),
            one.get("src", -1),
        )
        for one in RECORDED[name]
        if one["phase"] == phase
    ]


def issued(target: str, world: int = WORLD, rank: int = 0, **values: Any) -> list[Call]:
    """The collectives of one rank of a pattern, in program order."""
    program = build(find_pattern(str(FOLDER / target)), world, values)
    rows = [row for row in program.rows_of(rank) if program.is_collective[row]]
    return [_call(program, row) for row in rows]


def _call(program: Program, row: int) -> Call:
    site = program.site_of(row)
    given = program.operands
    first = int(program.first[row])
    operands = range(first, first + int(program.count[row]))
    taken = next(at for at in operands if given.access[at] != 1)  # the first that is not written
    kind = Kind(int(program.kind[row]))
    return (
        site.name,
        str(site.dtype.name if site.dtype else None),
        int(given.length[taken]),
        program.groups.entries[int(program.group[row])].members,
        str(site.op.op) if site.op else "",
        int(program.peer[row]) if kind is Kind.BROADCAST else -1,
    )


def test_ddp_sends_its_buckets_in_order_and_the_buffers_first() -> None:
    values = FLOAT32 | {"buffers": MASKS}
    assert issued("ddp.cl", **values) == recorded("ddp", "step 2")[2:]


def test_ddp_without_buffers_sends_gradients_only() -> None:
    assert issued("ddp.cl", **FLOAT32) == recorded("ddp_without_buffers", "step 2")[2:]


def test_ddp_agrees_on_new_buckets_before_its_second_step() -> None:
    assert issued("ddp.cl:rebuilding", layers=3) == recorded("ddp", "step 2")[:2]
    one = {"layers": 3, "buckets": 1}  # by default all of a small model is in one
    assert issued("ddp.cl:rebuilding", **one) == recorded("ddp_default", "step 2")[:2]


def test_ddp_sends_all_in_one_bucket_first() -> None:
    n = 3 * 12704 + (66 + 16 + 2) * 32
    whole = issued("ddp.cl:first_step", n=n, **parse_settings(("dtype=float32",)))
    for name in ("ddp", "ddp_default", "ddp_without_buffers"):
        assert [c for c in recorded(name, "step 1") if c[0] == "all_reduce"] == whole


@pytest.mark.parametrize(("name", "masks"), [("ddp", MASKS), ("ddp_without_buffers", 0)])
def test_ddp_compares_shapes_and_sends_parameters_when_it_is_made(name: str, masks: int) -> None:
    n = 3 * 12704 + (66 + 16 + 2) * 32 + masks
    told = issued("ddp.cl:construction", layers=3, n=n)
    # torch's own gathers into a list; what goes in is the same
    told[0] = ("all_gather", *told[0][1:])
    assert told == recorded(name, "construction")


@pytest.mark.parametrize("phase", ["step 1", "step 2"])
@pytest.mark.parametrize("name", ["zero2", "zero3"])
def test_fsdp_gathers_and_scatters_in_order(name: str, phase: str) -> None:
    assert issued(f"{name}.cl", **FLOAT32) == recorded(name, phase)
    assert recorded(name, "construction") == []


def test_fsdp_with_mixed_precision_sends_its_dtype() -> None:
    assert issued("zero3.cl", **SIZES) == recorded("zero3_bfloat16", "step 2")


@pytest.mark.slow
def test_torch_sends_what_was_recorded() -> None:
    """Also that all ranks issue the same, and that gloo was told what the dispatcher saw."""
    script = FOLDER / "record.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split(", ")[1] for line in done.stdout.splitlines()] == ["as recorded"] * 6
