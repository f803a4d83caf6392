"""However a command ends: one message on standard error, an exit code, and no traceback."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import click
import pytest

from commlang.cli.group import COMMANDS, commlang
from commlang.cli.guard import guarded
from commlang.errors import CommlangError, UsageError
from commlang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Result

    Cli = Callable[..., Result]


def test_version(cli: Cli) -> None:
    result = cli("--version")
    assert (result.code, result.out, result.err) == (0, f"commlang {__version__}\n", "")


def test_help_names_every_command(cli: Cli) -> None:
    result = cli("--help")
    assert result.code == 0
    for name, (_, text) in COMMANDS.items():
        assert f"  {name} " in result.out
        assert text in result.out
    assert cli().err.startswith("Usage: commlang")
    assert cli().code == 2


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "completion"])
def test_help_of_a_command_shows_how_to_call_it(cli: Cli, name: str) -> None:
    result = cli(name, "-h")
    assert result.code == 0
    assert f"Usage: commlang {name}" in result.out
    assert f"commlang {name} " in result.out.split("\n", 1)[1]


def test_every_command_is_there() -> None:
    ctx = click.Context(commlang)
    for name in commlang.list_commands(ctx):
        found = commlang.get_command(ctx, name)
        assert found is not None
        assert found.name == name


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ["lnt"],
            "error: there is no command `lnt`; did you mean `lint`?\ntry `commlang --help`\n",
        ),
        (["lint", "--wrld", "3", "a"], "error: no such option '--wrld'. Did you mean '--world'?\n"),
        (["show"], "error: missing argument 'NAME'\ntry `commlang show --help`\n"),
        (["--nope"], "error: no such option '--nope'\ntry `commlang --help`\n"),
    ],
)
def test_misuse(cli: Cli, argv: list[str], message: str) -> None:
    result = cli(*argv)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(message)


def raising(error: BaseException) -> Callable[[], object]:
    def work() -> object:
        raise error

    return work


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (CommlangError("rank 1 died"), 1, "error: rank 1 died\n"),
        (UsageError("no such thing"), 2, "error: no such thing\n"),
        (click.ClickException("Odd."), 2, "error: Odd.\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (click.Abort(), 130, "interrupted\n"),
        (
            MemoryError(),
            2,
            "error: out of memory; lower the parameters or the world, or set --max-events\n",
        ),
        (RecursionError("x"), 2, "error: the pattern is nested too deeply\n"),
        (OSError(28, "No space left on device"), 2, "error: No space left on device\n"),
        (OSError(13, "Permission denied", "a.cl"), 2, "error: Permission denied: a.cl\n"),
        (
            ValueError("one\ntwo"),
            2,
            "internal error: ValueError: one; please report it, with the traceback that "
            "COMMLANG_DEBUG=1 shows\n",
        ),
        (SystemExit(3), 3, ""),
        (SystemExit(), 0, ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_ends(
    error: BaseException,
    code: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("COMMLANG_DEBUG", raising=False)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    assert guarded(raising(error)) == code
    assert capsys.readouterr().err == message


def test_traceback_only_on_demand(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMLANG_DEBUG", "1")
    assert guarded(raising(ZeroDivisionError("of mine"))) == 2
    text = capsys.readouterr().err
    assert "Traceback (most recent call last)" in text
    assert "internal error: ZeroDivisionError: of mine" in text


def test_result_is_the_exit_code() -> None:
    assert guarded(lambda: 1) == 1
    assert guarded(lambda: None) == 0
