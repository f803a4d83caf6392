"""Tensors where the backend cannot reach them (CL263).

NCCL moves data between the memories of GPUs and takes nothing else. gloo runs its collectives on
CUDA tensors by way of the host's memory, but has no `send` and `recv` of them. MPI over
mpi4py takes those in the host's memory. The call fails, or, on gloo with a pointer into a
GPU's memory, takes the process down.

Check and run with the backend of the device: NCCL for CUDA tensors, gloo for those in the host's
memory. `backend="cpu:gloo,cuda:nccl"`, which is what torch takes if it is given none, has both.

- [torch.distributed, backends](https://docs.pytorch.org/docs/2.13/distributed.html#backends)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.refusals import refused
from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Severity
from commlang.transports.support import Aspect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts

RULE = Rule(
    "CL263",
    "unsupported-device",
    Severity.ERROR,
    invalid=(
        """\
# world: 2
# backend: gloo
# device: cuda
pattern main(x: float32[n], n = 8):
    if rank == 0:
        send(x, dst=1)  # CL263
    else:
        recv(x, src=0)
""",
        """\
# backend: nccl
# device: cpu
pattern main(x: float32[n], n = 8):
    all_reduce(x)  # CL263
""",
    ),
    valid=(
        """\
# backend: gloo
# device: cuda
pattern main(x: float32[n], n = 8):
    all_reduce(x)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """The first statement: all others are moved with it."""
    found = list(refused(facts, Aspect.DEVICE))
    if not found:
        return
    device = "CUDA" if facts.target.device_type == "cuda" else facts.target.device_type.upper()
    message = f"{found[0].lacks} {found[0].operation} of {device} tensors"
    notes = ("the call fails: it cannot reach their memory",)
    if len(found) > 1:
        notes += (f"and {len(found) - 1} more statement{'s' if len(found) > 2 else ''}",)
    other = "nccl" if facts.target.device_type == "cuda" else "gloo"
    yield Diagnostic(
        RULE.code, message, (facts.label(found[0].row),), notes, f"{device} tensors are for {other}"
    )
