"""A dtype that the backend does not move (CL261).

Each backend has a list of dtypes of its own, shorter than that of torch: what is not on it is
refused with an error such as `Invalid scalar type`, on every rank and after all the work before. On
gloo collectives take neither `int16` nor `float8`, although `send` and `recv` do; complex numbers
go through every call but `gather`. Local work has its limits too: torch cannot scale `float8`.

Cast into a `temp` of a wider dtype that the backend has, and back: the arrow does it. Where only
bytes are moved, messages are a way around on gloo.

- [torch.distributed, backends](https://docs.pytorch.org/docs/2.13/distributed.html#backends)
- [NCCL, types](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/types.html)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks.refusals import refused
from commlang.checks.rule import Rule
from commlang.diagnostics import Diagnostic, Severity
from commlang.dtypes import DTYPES
from commlang.transports.support import Aspect, dtypes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.checks.facts import Facts
    from commlang.checks.refusals import Refusal
    from commlang.dtypes import DType

RULE = Rule(
    "CL261",
    "unsupported-dtype",
    Severity.ERROR,
    invalid=(
        """\
# backend: gloo
pattern main(x: int16[n], n = 8):
    all_reduce(x)  # CL261
""",
        """\
# backend: nccl
pattern main(x: int16[n], n = 8):
    broadcast(x, src=0)  # CL261
""",
        """\
pattern main(x: float8_e4m3fn[n], n = 8):
    scale(x, 2)  # CL261
""",
    ),
    valid=(
        """\
# backend: gloo
pattern main(x: int16[n], n = 8):
    temp wide: int32[n]
    x -> wide
    all_reduce(wide)
    wide -> x
""",
        """\
# backend: mpi
pattern main(x: int16[n], n = 8):
    all_reduce(x)
""",
    ),
)


def check(facts: Facts) -> Iterator[Diagnostic]:
    """One finding per statement."""
    for found in refused(facts, Aspect.DTYPE):
        dtype = facts.program.site_of(found.row).dtype
        assert dtype is not None
        message = f"{found.lacks} {found.operation} of {dtype}"
        notes = (found.why, *([f"{found.who} does it on {_listed(found)}"] if found.who else []))
        yield Diagnostic(RULE.code, message, (facts.label(found.row),), notes, _hint(found, dtype))


def _listed(found: Refusal) -> str:
    """The dtypes that go, whole families by their name."""
    known = dtypes_of(found.backends[0], found.operation)
    names: list[str] = []
    for dtype in DTYPES.values():
        kin = [d.name for d in DTYPES.values() if _kin(d) == _kin(dtype)]
        whole = len(kin) > 1 and known.issuperset(kin)
        if dtype.name in known:
            names.append(_kin(dtype) if whole else dtype.name)
    return ", ".join(dict.fromkeys(names))


def _kin(dtype: DType) -> str:
    """What dtypes that mostly go together have in common."""
    if dtype.family == "complex":
        return "complex"
    return "float8" if dtype.family == "float" and dtype.itemsize == 1 else dtype.name


def _hint(found: Refusal, dtype: DType) -> str | None:
    """A dtype to cast into that holds all values."""
    known = set[str]().union(*(dtypes_of(b, found.operation) for b in found.backends))
    wider = [w for w in _wider(dtype) if w in known]
    return f"cast into a `temp` of {wider[0]} and back" if wider else None


def _wider(dtype: DType) -> list[str]:
    """Dtypes that hold every value of one, the smallest first."""
    size = dtype.itemsize
    entries = sorted(DTYPES.values(), key=lambda d: d.itemsize)
    match dtype.family:
        case "int":
            wide = [d for d in entries if d.family == "int" and d.itemsize > size]
        case "uint":
            wide = [d for d in entries if d.family in ("int", "uint") and d.itemsize > size]
        case "bool":
            wide = [d for d in entries if d.name == "uint8"]
        case "float" if size == 1:
            wide = [d for d in entries if d.name in ("bfloat16", "float32")]
        case family:
            wide = [d for d in entries if d.family == family and d.itemsize > size]
    return [d.name for d in wide]
