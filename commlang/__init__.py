"""commlang: communication patterns, proven free of deadlock before they run.

In a program of many ranks, once torch.distributed is initialised:

    plan = commlang.load("ring_all_reduce").plan(world=4, n=1024)
    with commlang.Executor(plan) as executor:
        executor.run(x=tensor)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from commlang.errors import CommlangError, PatternError, UsageError
from commlang.version import __version__

if TYPE_CHECKING:
    from commlang.api import Pattern, load, loads
    from commlang.automatic import auto
    from commlang.diagnostics import Diagnostic
    from commlang.execute.embed import process_group
    from commlang.execute.executor import Executor
    from commlang.execute.hooks import ddp_hook, fsdp_comms
    from commlang.execute.mpi.registry import register_mpi
    from commlang.plan import Plan
    from commlang.program import Program
    from commlang.simulate import Simulation

__all__ = [
    "CommlangError",
    "Diagnostic",
    "Executor",
    "Pattern",
    "PatternError",
    "Plan",
    "Program",
    "Simulation",
    "UsageError",
    "__version__",
    "auto",
    "ddp_hook",
    "fsdp_comms",
    "load",
    "loads",
    "process_group",
    "register_mpi",
]

_LAZY = {
    "Diagnostic": "commlang.diagnostics",
    "Executor": "commlang.execute.executor",
    "Pattern": "commlang.api",
    "Plan": "commlang.plan",
    "Program": "commlang.program",
    "Simulation": "commlang.simulate",
    "auto": "commlang.automatic",
    "ddp_hook": "commlang.execute.hooks",
    "fsdp_comms": "commlang.execute.hooks",
    "load": "commlang.api",
    "loads": "commlang.api",
    "process_group": "commlang.execute.embed",
    "register_mpi": "commlang.execute.mpi.registry",
}


if not TYPE_CHECKING:  # a type checker that saw it would take any name for one of these

    def __getattr__(name: str) -> Any:
        """Import on first use: `commlang lint` must not pay for torch or pydantic."""
        if name in _LAZY:
            return getattr(import_module(_LAZY[name]), name)
        raise AttributeError(f"module 'commlang' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
