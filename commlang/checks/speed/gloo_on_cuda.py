"""Tensors on GPUs that gloo moves (CL410).

gloo works in the host's memory: what lies on a GPU is copied there, moved by the host's processor
over sockets, and copied back. NCCL moves data from GPU to GPU, over NVLink or GPUDirect where there
are any, and reduces them on the GPUs. torch's documentation has the rule: NCCL for GPUs, gloo for
CPUs.

Run it with `--backend nccl`. What NCCL cannot do is not told.

- [torch.distributed, which backend to
  use](https://docs.pytorch.org/docs/2.13/distributed.html#which-backend-to-use)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.refusals import first_rows
from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Severity
from commlang.operations import Kind
from commlang.transports import Backend
from commlang.transports.support import called, supports

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts

RULE = Rule(
    "CL410",
    "gloo-on-cuda",
    Severity.ADVICE,
    invalid=(
        """\
# backend: gloo
# device: cuda
pattern main(x: float32[n], n = 8):
    all_reduce(x)  # CL410
""",
    ),
    valid=(
        """\
# backend: nccl
# device: cuda
pattern main(x: float32[n], n = 8):
    all_reduce(x)
""",
        """\
# backend: gloo
# device: cuda
pattern main(x: int32[n], n = 8):
    all_reduce(x, op=bor)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """The first statement that moves data, if NCCL could do all that do."""
    if facts.target.backend is not Backend.GLOO or facts.target.device_type != "cuda":
        return
    if facts.refusals:  # gloo does not even do it all
        return
    sites = facts.program.sites
    rows = {n: row for n, row in first_rows(facts).items() if _moves(facts, n)}
    can = (
        supports(
            "nccl",
            called(site.name, "nccl"),
            site.dtype and site.dtype.name,
            site.op and site.op.op,
            "cuda",
            facts.target.torch,
        )
        for site in (sites[number] for number in rows)
    )
    if rows and all(can):
        message = "gloo moves CUDA tensors by way of the host's memory"
        notes = ("NCCL moves them from GPU to GPU, and does all that this pattern needs",)
        label = facts.label(min(rows.values()))
        hint = "take NCCL: `--backend nccl`"
        yield Diagnostic(RULE.code, message, (label,), notes, hint, severity=Severity.ADVICE)


def _moves(facts: Facts, number: int) -> bool:
    return facts.program.sites[number].kind < Kind.BARRIER
