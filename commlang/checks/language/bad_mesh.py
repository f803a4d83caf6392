"""A mesh that does not fit the ranks (CL123).

The product of the sizes of the axes must be the number of ranks of the pattern, as for torch's
`init_device_mesh`.

Compute one of the axes from the others, `mesh dp = world // 2, tp = 2`, and say with `require` what
must divide. Without `--world` a pattern is checked for the world of its mesh.

- [Groups and meshes](language.md#groups-and-meshes)
- [torch.distributed.device_mesh](https://docs.pytorch.org/docs/2.13/distributed.html)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL123",
    "bad-mesh",
    Severity.ERROR,
    invalid=(
        """\
# world: 4
pattern main(x: float32[n], n = 8):
    mesh dp = 2, tp = 3  # CL123
    all_reduce(x, group=dp)
    all_reduce(x, group=tp)
""",
    ),
    valid=(
        """\
# world: 4
pattern main(x: float32[n], n = 8):
    require world % 2 == 0
    mesh dp = world // 2, tp = 2
    all_reduce(x, group=dp)
    all_reduce(x, group=tp)
""",
    ),
)
