"""The command line: each command is a module, imported when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 clean, 1 findings or failure, 2 could not run.

    Without `argv` it is the process's own command, and may end the process right there.
    """
    from commlang.cli.guard import guarded, leave

    def work() -> object:
        from commlang.cli.group import commlang

        return commlang.main(argv, prog_name="commlang", standalone_mode=False)

    code = guarded(work)
    return leave(code) if argv is None else code
