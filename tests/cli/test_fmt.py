"""`commlang fmt`: in place and atomically, or only told."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from .conftest import Result

    Cli = Callable[..., Result]

LOOSE = "pattern a( x:float32[8] ):   # sum\n  all_reduce( x )\n"
TIDY = "pattern a(x: float32[8]):  # sum\n    all_reduce(x)\n"


def test_in_place_keeps_the_mode(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text(LOOSE)
    (folder / "b.cl").write_text(TIDY)
    (folder / "a.cl").chmod(0o640)
    before = (folder / "b.cl").stat()
    result = cli("fmt", ".")
    assert (result.code, result.out, result.err) == (0, "", "formatted 1 of 2 files\n")
    assert (folder / "a.cl").read_text() == TIDY
    assert stat.S_IMODE((folder / "a.cl").stat().st_mode) == 0o640
    assert (folder / "b.cl").stat().st_ino == before.st_ino, "nothing to do, but written"
    assert sorted(path.name for path in folder.iterdir()) == ["a.cl", "b.cl"]


def test_link_stays_a_link(cli: Cli, folder: Path) -> None:
    (folder / "real.cl").write_text(LOOSE)
    (folder / "link.cl").symlink_to("real.cl")
    assert cli("fmt", "link.cl").code == 0
    assert (folder / "link.cl").is_symlink()
    assert (folder / "real.cl").read_text() == TIDY


def test_check_writes_nothing(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text(LOOSE)
    result = cli("fmt", "--check", "a.cl")
    assert (result.code, result.out) == (1, "would reformat a.cl\n")
    assert result.err == "1 of 1 file would change\n"
    assert (folder / "a.cl").read_text() == LOOSE
    (folder / "a.cl").write_text(TIDY)
    result = cli("fmt", "--check", "a.cl")
    assert (result.code, result.out, result.err) == (0, "", "0 of 1 file would change\n")


def test_diff(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text(LOOSE)
    result = cli("fmt", "--diff", "a.cl")
    assert result.code == 1
    assert result.out == (
        "--- a.cl\n+++ a.cl (formatted)\n@@ -1,2 +1,2 @@\n"
        "-pattern a( x:float32[8] ):   # sum\n-  all_reduce( x )\n"
        "+pattern a(x: float32[8]):  # sum\n+    all_reduce(x)\n"
    )
    assert (folder / "a.cl").read_text() == LOOSE


def test_diff_of_what_does_not_show(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_bytes(TIDY.replace("\n", "\r\n").encode())
    result = cli("fmt", "--diff", "a.cl")
    assert result.code == 1
    assert result.out == "a.cl: only its line endings or its byte order mark would change\n"
    assert cli("fmt", "a.cl").code == 0
    assert (folder / "a.cl").read_bytes() == TIDY.encode()


def test_diff_of_a_file_without_its_last_newline(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text(TIDY.rstrip("\n"))
    result = cli("fmt", "--diff", "a.cl")
    assert "-    all_reduce(x)\n\\ No newline at end of file\n+    all_reduce(x)\n" in result.out


def test_standard_input(cli: Cli) -> None:
    result = cli("fmt", "-", stdin=LOOSE)
    assert (result.code, result.out, result.err) == (0, TIDY, "")
    result = cli("fmt", "--check", "-", stdin=LOOSE)
    assert (result.code, result.out) == (1, "would reformat <stdin>\n")


def test_file_that_does_not_parse_is_left_alone(cli: Cli, folder: Path) -> None:
    (folder / "bad.cl").write_text("pattern (\n")
    (folder / "a.cl").write_text(LOOSE)
    result = cli("fmt", "bad.cl", "a.cl")
    assert result.code == 1
    assert result.err.startswith("error[CL001]")
    assert "bad.cl:1:9" in result.err
    assert result.err.endswith("formatted 1 of 1 file\n")
    assert (folder / "bad.cl").read_text() == "pattern (\n"
    assert (folder / "a.cl").read_text() == TIDY


def test_failure_to_write_destroys_nothing(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    (folder / "a.cl").write_text(LOOSE)
    monkeypatch.setattr(os, "fsync", full)
    result = cli("fmt", "a.cl")
    assert (result.code, result.err) == (2, "error: cannot write a.cl: No space left on device\n")
    assert (folder / "a.cl").read_text() == LOOSE
    assert [path.name for path in folder.iterdir()] == ["a.cl"]


def test_read_only_file_is_not_replaced(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.cl").write_text(LOOSE)
    monkeypatch.setattr(
        os, "access", lambda path, mode: mode != os.W_OK
    )  # for root, all is writable
    result = cli("fmt", "a.cl")
    assert (result.code, result.err) == (2, "error: cannot write a.cl: it is read-only\n")
    assert (folder / "a.cl").read_text() == LOOSE


def test_what_cannot_be_read(cli: Cli, folder: Path) -> None:
    assert cli("fmt", "nope.cl").err == "error: cannot read nope.cl: No such file or directory\n"
    (folder / "empty").mkdir()
    result = cli("fmt", "empty")
    assert (result.code, result.err) == (2, "error: there is no .cl file in empty\n")
