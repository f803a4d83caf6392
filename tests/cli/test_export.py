"""`commlang export`: what it writes, where, and what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Result

STUCK = """\
pattern main(x: float32[n], y: float32[n], n = 8):
    preset tiny: world = 3, n = 2
    send(x, dst=ranks.next)
    recv(y, src=ranks.prev)
"""


def test_it_prints_a_script_for_the_world_and_the_parameters(cli: Callable[..., Result]) -> None:
    result = cli("export", "ring_all_reduce", "--world", "3", "--set", "n=4Ki", "--set", "op=max")
    assert result.code == 0
    assert result.err == ""
    assert result.out.startswith('"""ring_all_reduce for 3 ranks, on torch.distributed.\n')
    assert "\nWORLD = 3\nN = 4096  # ring_all_reduce.cl:1\nOP = dist.ReduceOp.MAX" in result.out
    assert "ring_all_reduce(dist.group.WORLD, x, op=OP)" in result.out


def test_it_writes_a_file_and_never_over_one(cli: Callable[..., Result], folder: Path) -> None:
    result = cli("export", "--to", "python", "all_reduce", "--preset", "dgx", "-o", "mine.py")
    assert (result.code, result.out) == (0, "")
    assert result.err == "wrote mine.py; run it with `torchrun --nproc-per-node 8 mine.py`\n"
    text = (folder / "mine.py").read_text(encoding="utf-8")
    assert "    torchrun --nproc-per-node 8 mine.py\n" in text
    again = cli("export", "all_reduce", "-o", "mine.py")
    assert (again.code, again.err) == (2, "error: mine.py exists already; choose another name\n")
    assert (folder / "mine.py").read_text(encoding="utf-8") == text


def test_a_file_that_cannot_be_written_is_an_error(cli: Callable[..., Result]) -> None:
    result = cli("export", "all_reduce", "-o", "none/mine.py")
    told = "error: cannot write none/mine.py: there is no folder none\n"
    assert (result.code, result.out, result.err) == (2, "", told)


def test_an_unsound_pattern_is_refused_and_nothing_written(
    cli: Callable[..., Result], folder: Path
) -> None:
    (folder / "stuck.cl").write_text(STUCK, encoding="utf-8")
    result = cli("export", "stuck.cl", "--preset", "tiny", "-o", "stuck.py")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error[CL201]: ")
    assert "--> stuck.cl:3:5" in result.err
    assert not (folder / "stuck.py").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--to", "fortran", "all_reduce"), "invalid value for '--to': 'fortran' is not 'python'"),
        (("all_reduce", "--set", "m=8"), "--set m: `main` has no such parameter; it has n"),
        (("all_reduce", "--world", "0"), "invalid value for '--world'"),
        (("all_reduce", "--preset", "large"), "large"),
        (("nowhere.cl",), "nowhere.cl"),
    ],
)
def test_mistakes_of_use(cli: Callable[..., Result], arguments: tuple[str, ...], told: str) -> None:
    result = cli("export", *arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ")
    assert told in result.err


def test_what_has_no_form_in_a_script_is_an_error_with_its_place(
    cli: Callable[..., Result], folder: Path
) -> None:
    text = """\
pattern main(x: float32[2, 2], t: int[2, 2] = [[1, 2], [3, 4]]):
    let f(a) = a[0, 1]
    scale(x, f(t))
    scale(f(x), 2)
"""
    (folder / "odd.cl").write_text(text, encoding="utf-8")
    result = cli("export", "odd.cl", "--world", "2")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: cannot export: this is a tensor in one call and a list")
    assert "--> odd.cl:2:16" in result.err
