"""A reduce op that the backend does not have for the dtype (CL262).

Not every op goes with every dtype, nor is every one on every backend. A mean of integers is no
integer, so gloo refuses `avg` on them; bit operations on floats and the order of complex numbers
mean nothing anywhere; NCCL has no bit operations; `premul_sum` exists on NCCL only. The call fails
on every rank. The same holds of accumulating arrows, which torch computes itself.

For a mean of integers, sum them in a dtype that is wide enough, cast to a float and scale. On NCCL,
`band` of flags is `min`, and `bor` is `max`. Instead of `premul_sum`, `scale` before the sum.

- [torch.distributed.ReduceOp](https://docs.pytorch.org/docs/2.13/distributed.html)
- [pytorch PR 149781](https://github.com/pytorch/pytorch/pull/149781): avg on gloo
- [NCCL, ops](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/types.html)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.refusals import refused
from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Severity
from commlang.operations import Kind, ReduceOp
from commlang.transports.support import Aspect, ops_of, since

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.checks.refusals import Refusal
    from commlang.dtypes import DType

RULE = Rule(
    "CL262",
    "unsupported-reduce-op",
    Severity.ERROR,
    invalid=(
        """\
# backend: gloo
pattern main(x: int32[n], n = 8):
    all_reduce(x, op=avg)  # CL262
""",
        """\
# backend: gloo
# torch: 2.7
pattern main(x: float32[n], n = 8):
    all_reduce(x, op=avg)  # CL262
""",
        """\
# backend: nccl
pattern main(x: int32[n], n = 8):
    all_reduce(x, op=bor)  # CL262
""",
        """\
pattern main(x: float32[n], y: float32[n], z: complex64[n], n = 8):
    x -> y, op=bxor  # CL262
    all_reduce(z, op=max)  # CL262
""",
    ),
    valid=(
        """\
# backend: gloo
pattern main(x: int32[n], n = 8):
    temp mean: float64[n]
    x -> mean
    all_reduce(mean, op=avg)
    mean -> x
""",
        """\
pattern main(x: float32[n], n = 8):
    all_reduce(x, op=premul_sum(1 / world))
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per statement."""
    for found in refused(facts, Aspect.OP):
        site = facts.program.site_of(found.row)
        assert site.op is not None
        assert site.dtype is not None
        arrow = site.kind is Kind.ACCUMULATE
        what = "an arrow" if arrow else found.operation
        op = site.op.op
        message = f"{found.lacks} `{op}` of {site.dtype} for {what}"
        notes = (found.why,)
        if found.who:
            asked = found.backends[0], found.operation, site.dtype.name
            known = ops_of(*asked, facts.target.torch)
            if op not in known and op in ops_of(*asked):
                release = since(found.backends[0], op)
                message += f" in torch {facts.target.torch}"
                notes = (f"{found.who} has it since torch {release}; before, it may sum silently",)
            notes += (f"on {site.dtype} it has {', '.join(known) or 'none'}",)
        hint = _hint(found, op, site.dtype)
        yield Diagnostic(RULE.code, message, (facts.label(found.row),), notes, hint)


def _hint(found: Refusal, op: ReduceOp, dtype: DType) -> str | None:
    """What to write instead, where there is something."""
    match op:
        case ReduceOp.AVG if dtype.family in ("int", "uint"):
            return "a mean of integers is a fraction: cast into a `temp` of a float dtype first"
        case ReduceOp.AVG if dtype.family in ("float", "complex"):
            return "reduce with `op=sum`, then `scale(…, 1 / world)`"
        case ReduceOp.PREMUL_SUM:
            return "`scale` by the factor, then reduce with `op=sum`"
        case ReduceOp.BAND | ReduceOp.BOR | ReduceOp.BXOR if dtype.family == "bool":
            same = {"band": "min", "bor": "max"}.get(op)
            return f"of flags, `{op}` is `{same}`" if same else None
        case ReduceOp.BAND | ReduceOp.BOR | ReduceOp.BXOR if dtype.family == "float":
            return "bit operations are for integers and flags"
        case ReduceOp.MIN | ReduceOp.MAX if dtype.family == "complex":
            return "complex numbers have no order"
        case _:
            return None
