"""The exceptions that commlang raises for a user's mistake; all carry the exit code of the CLI."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.diagnostics import Diagnostic


class CommlangError(Exception):
    """A failure that a user can act on; its text is the whole message."""

    exit_code: int = 1


class UsageError(CommlangError):
    """commlang could not start the work: a wrong argument, a file or an environment."""

    exit_code = 2


class PatternError(CommlangError):
    """A pattern was refused; `diagnostics` says where and why."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n\n".join(d.render() for d in self.diagnostics))
