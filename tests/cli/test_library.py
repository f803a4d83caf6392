"""`list`, `show`, `new` and `completion`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from commlang.cli.show import command as show
from commlang.cli.show import complete_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Result

    Cli = Callable[..., Result]

PATTERNS = Path(__file__).parents[2] / "patterns"


def test_list_shows_every_file_with_what_it_does(cli: Cli) -> None:
    result = cli("list")
    assert (result.code, result.err) == (0, "")
    rows = dict(re.findall(r"^  (\w+) +(\S.*)$", result.out, re.MULTILINE))
    assert set(rows) == {path.stem for path in PATTERNS.rglob("*.cl")}
    topics = re.findall(r"^(\w+)$", result.out, re.MULTILINE)
    assert topics == sorted(path.name for path in PATTERNS.iterdir() if path.is_dir())
    ring = (PATTERNS / "point_to_point" / "ring_all_reduce.cl").read_text()
    assert f'"""{rows["ring_all_reduce"]}\n' in ring


def test_list_of_a_topic(cli: Cli) -> None:
    result = cli("list", "pipeline")
    assert result.out.splitlines()[0] == "pipeline"
    assert len(result.out.splitlines()) == 1 + len(list((PATTERNS / "pipeline").glob("*.cl")))
    result = cli("list", "pipelines")
    assert result.code == 2
    assert "error: there is no topic `pipelines`; there are collectives, " in result.err


@pytest.mark.parametrize(
    "name", ["gpipe", "pipeline/gpipe", "pipeline.gpipe", "gpipe.cl", "pipeline/gpipe.cl"]
)
def test_show(cli: Cli, name: str) -> None:
    path = PATTERNS / "pipeline" / "gpipe.cl"
    result = cli("show", name)
    assert (result.code, result.err) == (0, "")
    assert result.out == f"# {path}\n{path.read_text()}"
    assert cli("lint", "-", stdin=result.out).code == 0


def test_show_what_is_not_there(cli: Cli) -> None:
    result = cli("show", "gpype")
    assert result.code == 2
    assert result.err == "error: the pattern library has no `gpype`; did you mean `gpipe`?\n"
    assert cli("show", "zzz").err.endswith("no `zzz`; `commlang list` shows them all\n")


def test_names_are_completed() -> None:
    items = complete_name(click.Context(show), show.params[0], "pipeline/g")
    assert [item.value for item in items] == ["pipeline/gpipe"]
    items = complete_name(click.Context(show), show.params[0], "ring_all_r")
    assert [item.value for item in items] == ["ring_all_reduce"]


@pytest.mark.parametrize(
    ("target", "file", "name"),
    [("ring", "ring.cl", "ring"), ("sub/my-ring.cl", "sub/my-ring.cl", "my_ring")],
)
def test_new_pattern_is_clean_and_formatted(
    cli: Cli, folder: Path, target: str, file: str, name: str
) -> None:
    (folder / "sub").mkdir()
    result = cli("new", target)
    assert (result.code, result.err) == (0, "")
    assert result.out == f"wrote {file}; check it with `commlang lint {file}`\n"
    assert f"pattern {name}(" in (folder / file).read_text()
    assert cli("lint", file).out == "checked 1 pattern in 1 file: no findings\n"
    assert cli("fmt", "--check", file).code == 0
    for world in ("2", "3", "7"):
        assert cli("lint", file, "--world", world).code == 0


def test_new_never_overwrites(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text("mine")
    result = cli("new", "a")
    assert (result.code, result.err) == (2, "error: a.cl exists already; choose another name\n")
    assert (folder / "a.cl").read_text() == "mine"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no/where", "cannot write no/where.cl: there is no folder no"),
        ("all_reduce", "`all_reduce` is an operation already; choose another name"),
        ("for", "`for` cannot be the name of a pattern: `for` is a reserved word"),
        ("2x", "`2x` cannot be the name of a pattern: a name is letters, digits and `_`"),
        ("é", "`é` cannot be the name of a pattern: a name is letters"),
        ("a b", "`a b` cannot be the name of a pattern"),
    ],
)
def test_new_refuses(cli: Cli, folder: Path, target: str, message: str) -> None:
    result = cli("new", target)
    assert result.code == 2
    assert result.err.startswith(f"error: {message}")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(cli: Cli, shell: str) -> None:
    result = cli("completion", shell)
    assert result.code == 0
    assert f"_COMMLANG_COMPLETE={shell}_complete" in result.out
    assert "commlang" in result.out


def test_completion_of_an_unknown_shell(cli: Cli) -> None:
    result = cli("completion", "csh")
    assert result.code == 2
    assert "'csh' is not one of 'bash', 'zsh', 'fish'" in result.err
