"""Rules on how a file is written, which need no expansion of it: names, branches and comments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.hygiene import (
    dead_branch,
    shadowed_name,
    unused_buffer,
    unused_name,
    unused_parameter,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.diagnostics import Diagnostic
    from commlang.resolve.modules import Module


RULES = (unused_buffer, unused_parameter, unused_name, dead_branch, shadowed_name)


def check_hygiene(module: Module) -> Iterator[Diagnostic]:
    """What is untidy in a file without static faults, its imports left out."""
    for rule in RULES:
        yield from rule.check(module)
