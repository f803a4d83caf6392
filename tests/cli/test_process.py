"""The command as a process of its own: streams, signals, imports, and what it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAULTY = "pattern main(x: float32[8]):\n    all_reduce(y)\n"
COMMAND = [sys.executable, "-m", "commlang"]


def environment(**variables: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT)} | variables


def run(
    *argv: str, cwd: Path, stdin: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *argv],
        cwd=cwd,
        env=environment(**variables),
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def test_exit_codes_and_streams(tmp_path: Path) -> None:
    (tmp_path / "a.cl").write_text(FAULTY)
    assert run("--version", cwd=tmp_path).stdout.startswith("commlang ")
    result = run("lint", "ring_all_reduce", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "checked 1 pattern in 1 file: no findings\n"
    result = run("lint", "a.cl", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (1, "")
    assert "--> a.cl:2:16" in result.stdout
    result = run("lint", "b.cl", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "error: cannot read b.cl: No such file or directory\n"


def test_standard_input(tmp_path: Path) -> None:
    text = "pattern a( ): # é\n pass\n"
    result = run("fmt", "-", cwd=tmp_path, stdin=text, LC_ALL="C", PYTHONUTF8="0")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "pattern a():  # é\n    pass\n"


def test_lint_loads_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "a.cl").write_text("pattern a(x: float32[8]):\n    send(x, dst=ranks.next)\n")
    heavy = "{'torch', 'scipy', 'networkx', 'pydantic', 'multiprocessing'}"
    code = (
        "import sys; from commlang.cli import main; code = main(['lint', 'a.cl']); "
        f"print(code, sorted({heavy} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    assert result.stdout.endswith("\n1 []\n"), result.stdout


@pytest.mark.parametrize("name", ["--version", "--help", "show"])
def test_other_commands_do_not_pay_for_the_language(name: str, tmp_path: Path) -> None:
    argv = [name, "gpipe"] if name == "show" else [name]
    code = (
        f"import sys; from commlang.cli import main; main({argv}); "
        "print(sorted({'numpy', 'torch', 'pydantic'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    assert result.stdout.endswith("\n[]\n"), result.stdout


def test_terminal_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "a.cl").write_text("pattern a(x: float32[k], k: int):\n    all_reduce(x)\n")
    result = run("lint", "a.cl", cwd=tmp_path, PYTHONIOENCODING="latin-1")
    assert result.returncode == 0, result.stderr
    assert r"--set k=\u2026" in result.stdout


def test_reader_that_goes_away(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run(
        [*COMMAND, "list"],
        cwd=tmp_path,
        env=environment(),
        stdout=writing,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert (result.returncode, result.stderr) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_disk_that_is_full(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [*COMMAND, "list"],
            cwd=tmp_path,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
    assert (result.returncode, result.stderr) == (2, "error: No space left on device\n")


def test_closed_output(tmp_path: Path) -> None:
    (tmp_path / "a.cl").write_text(FAULTY)
    shell = f'"{sys.executable}" -m commlang lint a.cl >&-; echo "code $?"'
    result = subprocess.run(
        ["bash", "-c", shell],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert (result.stdout, result.stderr) == ("code 1\n", "")


def test_interrupt(tmp_path: Path) -> None:
    # Where the tests run in the background, SIGINT may be ignored: that is inherited.
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from commlang.cli import main; sys.exit(main())"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "lint", "-"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    with process:
        assert process.stdin is not None
        # More than a pipe holds: when it has been written, the command is reading, and goes on.
        process.stdin.write("# a comment\n" * 20_000)
        process.stdin.flush()
        for _ in range(10):
            # Python misses a signal that comes right before it blocks in a read: send another.
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
                break
        assert process.stderr is not None
        err = process.stderr.read()
    assert process.returncode == 130
    assert err.strip() == "interrupted"
