"""Pictures word for word: golden/NAME.cl gives NAME.svg, .txt, .mmd and .dot.

The Mermaid files were drawn with Mermaid 11, the DOT files with Graphviz, and looked at. To write
them anew: `cd tests/draw/golden && for f in *.svg *.txt *.mmd *.dot; do commlang draw
"${f%.*}.cl" -o $f; done`, and look at the pictures.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Result

GOLDEN = Path(__file__).parent / "golden"
FORMATS = {".svg": "svg", ".txt": "text", ".mmd": "mermaid", ".dot": "dot"}
CASES = sorted(path for path in GOLDEN.iterdir() if path.suffix in FORMATS)


@pytest.mark.parametrize("expected", CASES, ids=lambda path: path.name)
def test_draw_prints(
    expected: Path, drawn: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(GOLDEN)
    result = drawn(f"{expected.stem}.cl", "--format", FORMATS[expected.suffix])
    assert result.out == expected.read_text(encoding="utf-8")
    hangs = expected.stem == "shift"
    assert result.code == (1 if hangs else 0)
    assert ("error[CL201]: deadlock: 4 ranks wait for one another" in result.err) is hangs
    assert ("`shift` is drawn all the same, in program order" in result.err) is hangs


def test_every_pattern_has_every_format() -> None:
    patterns = {path.stem for path in GOLDEN.glob("*.cl")}
    assert {(p.stem, p.suffix) for p in CASES} == {(s, f) for s in patterns for f in FORMATS}


def test_names_from_a_file_stay_text() -> None:
    """A label with tags, quotes and signs of every format in it changes none of them."""
    hostile = "</title> <b> & ' ]]> ; # %% $x"
    tree = ElementTree.parse(GOLDEN / "step.svg")
    tips = [node.text for node in tree.iter("{http://www.w3.org/2000/svg}title")]
    assert sum(hostile in (tip or "") for tip in tips) == 4
    assert not list(tree.iter("{http://www.w3.org/2000/svg}b"))
    mermaid = (GOLDEN / "step.mmd").read_text(encoding="utf-8")
    assert "#lt;/title#gt; #lt;b#gt; & ' ]]#gt; #59; #35; %#37; $x" in mermaid
    assert f'label="{hostile}"' in (GOLDEN / "step.dot").read_text(encoding="utf-8")


def test_the_pictures_of_the_manual_are_current(drawn: Callable[..., Result]) -> None:
    pictures = Path(__file__).parents[2] / "docs" / "img"
    pipeline = (pictures / "one_f_one_b.svg").read_text(encoding="utf-8")
    assert drawn("one_f_one_b", "--set", "micro=4", "--format", "svg").out == pipeline
    deadlock = (pictures / "deadlock.svg").read_text(encoding="utf-8")
    assert deadlock == (GOLDEN / "shift.svg").read_text(encoding="utf-8")
