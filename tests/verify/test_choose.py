"""Which file, and which of its patterns."""

from __future__ import annotations

from pathlib import Path

import pytest

from commlang.errors import PatternError, UsageError
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.verify import choose_pattern, find_pattern, locate_source, split_target

ROOT = Path(__file__).parents[2]


def chosen(names: str, path: str = "ring.cl", name: str | None = None) -> str:
    text = "".join(f"pattern {n}(x: float32[8]):\n    all_reduce(x)\n\n" for n in names.split())
    text += "extern work(x: read float32[8])\n"
    return choose_pattern(load_module(Source(text, path)), name).node.name


def test_choice() -> None:
    assert chosen("a main ring") == "main"
    assert chosen("a ring") == "ring"
    assert chosen("a") == "a"
    assert chosen("a b ring", name="b") == "b"


@pytest.mark.parametrize(
    ("names", "name", "message"),
    [
        ("a b", None, "ring.cl has several patterns: write ring.cl:a or ring.cl:b"),
        ("", None, "ring.cl has no pattern"),
        ("", "a", "ring.cl has no pattern"),
        ("alpha b", "alpa", "ring.cl has no pattern `alpa`; did you mean `alpha`?"),
        ("a b", "zzz", "ring.cl has no pattern `zzz`; write ring.cl:a or ring.cl:b"),
        ("a", "work", "`work` in ring.cl is an extern, not a pattern"),
    ],
)
def test_no_choice(names: str, name: str | None, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        chosen(names, name=name)
    assert str(caught.value) == message


def test_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert split_target("a.cl") == ("a.cl", None)
    assert split_target("a.cl:main") == ("a.cl", "main")
    assert split_target("dir:x/a.cl") == ("dir:x/a.cl", None)
    assert split_target(":main") == (":main", None)
    Path("a.cl:main").touch()
    assert split_target("a.cl:main") == ("a.cl:main", None)


def test_located(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    library = ROOT / "patterns" / "pipeline" / "gpipe.cl"
    assert locate_source("gpipe").path == str(library)
    Path("gpipe").write_text("# a file of that name comes first\n")
    assert locate_source("gpipe").path == "gpipe"
    for missing in ("./gpype", "gpype.cl", "/gpype"):
        with pytest.raises(UsageError, match=f"cannot read {missing}: No such file"):
            locate_source(missing)


def test_found_pattern_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        find_pattern("point_to_point/ring_all_reduce:ring_all_reduce").node.name
        == "ring_all_reduce"
    )
    Path("a.cl").write_text("pattern a(x: float32[8]):\n    all_reduce(y)\n")
    with pytest.raises(PatternError, match="`y` is not defined"):
        find_pattern("a.cl")
