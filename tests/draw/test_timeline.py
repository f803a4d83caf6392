"""Timelines as SVG and text: well-formed, inside their frame, small for many ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np
import pytest

from commlang.draw import Subject, draw
from commlang.program.timing import Timing
from commlang.resolve.library import library_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from commlang.program import Program

SPACE = "{http://www.w3.org/2000/svg}"
NAMES = sorted(path.stem for path in library_files())
THOUSAND = ("tree_all_reduce", "chain_broadcast", "star_all_reduce", "all_reduce")
LARGEST = 160_000
"""Bytes of a picture of 1,024 ranks."""


def shapes(picture: str) -> Iterator[tuple[str, float, float, float]]:
    """Each rectangle and text with its left, right and lower edge, as wide as it may be."""
    root = ElementTree.fromstring(picture)
    for node in root.iter():
        x, y = (float(node.get(key, 0)) for key in ("x", "y"))
        if node.tag == f"{SPACE}rect":
            yield "rect", x, x + float(node.get("width", 0)), y + float(node.get("height", 0))
        elif node.tag == f"{SPACE}text":
            width = len(node.text or "") * 5
            names = (node.get("class") or "").split()
            left = x - width * ("end" in names) - width / 2 * ("mid" in names)
            yield "text", left, left + width, y


def check(picture: str) -> None:
    root = ElementTree.fromstring(picture)
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for _, left, right, low in shapes(picture):
        assert left >= -1
        assert right <= width + 1
        assert low <= height + 1


@pytest.mark.parametrize("name", ["ring_all_reduce", "one_f_one_b", "moe", "fsdp_step"])
def test_nothing_leaves_the_frame(program: Callable[..., Program], name: str) -> None:
    check(draw(Subject(program(name, 4))))


def test_words_of_a_stop_at_the_edge_stay_inside(program: Callable[..., Program]) -> None:
    text = "pattern main(x: float32[n], n = 8):\n    if rank == 0:\n        send(x, dst=1)\n"
    picture = draw(Subject(program(text, 2)))
    check(picture)
    assert 'class="alarm small end">nothing moves from here on' in picture
    one = draw(Subject(program("pattern main():\n    if rank > 5:\n        barrier()\n", 1)))
    assert "on 1 rank<" in one


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["svg", "html", "text", "mermaid", "dot"])
def test_all_of_the_library(program: Callable[..., Program], name: str, form: str) -> None:
    from commlang.verify import default_world, find_pattern

    world = default_world(find_pattern(name), {})
    picture = draw(Subject(program(name, world)), form=form)
    if form == "svg":
        check(picture)
    assert name in picture


@pytest.mark.parametrize("name", THOUSAND)
def test_a_thousand_ranks_stay_small(program: Callable[..., Program], name: str) -> None:
    picture = draw(Subject(program(name, 1024)))
    check(picture)
    assert len(picture) < LARGEST
    assert "ranks are not shown" in picture


@pytest.mark.slow
def test_five_million_events_stay_small(program: Callable[..., Program]) -> None:
    made = program("ring_all_reduce", 1024)
    assert len(made) > 5_000_000
    for form in ("svg", "html", "text", "mermaid", "dot"):
        assert len(draw(Subject(made), form=form)) < LARGEST


def test_many_events_of_one_clock_stay_small(program: Callable[..., Program]) -> None:
    made = program("one_f_one_b", 4, micro=2000)
    start = np.concatenate([np.arange(len(made.rows_of(r)), dtype=float) for r in range(4)]) * 1e-3
    picture = draw(Subject(made, (Timing(start, start + 9e-4, "measured"),)))
    check(picture)
    assert len(picture) < 500_000
    assert "Measured; 12 s in all." in picture


def test_where_steps_are_left_out_it_is_said(program: Callable[..., Program]) -> None:
    picture = draw(Subject(program("chain_broadcast", 100)), form="text")
    assert "Steps in which no rank that is shown starts or ends anything are left out." in picture
    steps = next(line for line in picture.splitlines() if line.startswith("step")).split()
    assert steps[:13] == ["step", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "98", "99"]


def test_ranks_that_are_not_shown_are_named_where_they_matter(
    program: Callable[..., Program],
) -> None:
    subject = Subject(program("ring_all_reduce", 8), ranks=(3,))
    assert "participant r4 as rank 4 (not shown)" in draw(subject, form="mermaid")
    assert 'rank4 [label="rank 4", style=dashed];' in draw(subject, form="dot")
    check(draw(subject))
