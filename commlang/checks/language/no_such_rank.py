"""A rank that is not there (CL116).

The peer of a message or the root of a collective is no rank of the pattern, or no member of the
group. gloo answers a peer beyond the world with a segmentation fault. `src`, `dst` and `@` are
ranks of the pattern, also with `group=`, as torch's are ranks of the job; a place in a group is
`g[i]`, or `group_src=` and `group_dst=`.

Ranks do not wrap round: write `ranks.next` or `(rank + 1) % world`, or leave the last rank out.

- [Groups and meshes](language.md#groups-and-meshes)
- Global against group rank: [pytorch issue 91535](https://github.com/pytorch/pytorch/issues/91535)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL116",
    "no-such-rank",
    Severity.ERROR,
    invalid=(
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    parallel:
        send(x, dst=rank + 1)  # CL116
        recv(y, src=ranks.prev)
""",
        """\
pattern main(x: float32[n], n = 8):
    group back = ranks[2:]
    if rank in back:
        broadcast(x, src=0, group=back)  # CL116
""",
    ),
    valid=(
        """\
pattern main(x: float32[n], y: float32[n], n = 8):
    parallel:
        send(x, dst=ranks.next)
        recv(y, src=ranks.prev)
    group back = ranks[2:]
    if rank in back:
        broadcast(x, src=back[0], group=back)
""",
    ),
)
