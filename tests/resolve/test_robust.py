"""Whatever parses can be checked: no exception, and every finding has a code and a place."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from commlang.errors import PatternError
from commlang.resolve.check import check_module
from commlang.resolve.modules import load_module
from commlang.source import Source

TEXT = """\
extern work(t: read float32[m], k: int):
    cost 4 * m / 1T
pattern p(x: float32[n, n], c: int[world, world], n = 1Ki, op = sum, t = 2ms):
    require world % 2 == 0, "even"
    ensure x == op(old(x) @ r for r in ranks)
    ensure x[i] @ 0 == (old(x) @ i)[rank] for i in range(n) if i > 0
    preset small: n = 4, world = 2
    mesh a = world // 2, b = 2
    group g = ranks[::2]
    let f(k) = k // 2 if k > 1 else -1
    let v = x.chunks(world)[rank].reshape(2, n // 2)
    temp y: like v
    for i, j in enumerate([c[rank, d] for d in ranks]):
        h[i] = async send(v, dst=(rank + j) % world, tag=1)
    wait(h)
    parallel for r in ranks[1:]:
        x @ r -> x[0] @ f(r), op=op
    if rank in g and not a.index == 0:
        compute(t, "c", reads=[x, v], writes=y)
        work(v, len(ranks), group=g)
        p(x, c, n=n, group=b)
"""
TOKENS = re.findall(r"\s+|[A-Za-z_]\w*|\d\w*|\"[^\"]*\"|->|\S", TEXT)
WORDS = sorted({token for token in TOKENS if not token.isspace()})
EDIT = st.tuples(st.integers(0, len(TOKENS) - 1), st.sampled_from(["", *WORDS]))


@given(st.lists(EDIT, min_size=1, max_size=4))
def test_any_edit_of_a_pattern_is_checked_or_refused(edits: list[tuple[int, str]]) -> None:
    tokens = list(TOKENS)
    for place, word in edits:
        if not tokens[place].isspace():
            tokens[place] = word
    source = Source("".join(tokens))
    try:
        module = load_module(source)
    except PatternError:
        return
    for finding in check_module(module):
        assert re.fullmatch(r"CL10[1-5]", finding.code)
        assert finding.labels[0].source is source
        assert finding.where() in finding.render()


def test_many_findings_stay_quick_to_name_and_complete() -> None:
    lines = "".join(f"    send(name{i}, dst=0)\n" for i in range(3000))
    found = check_module(load_module(Source(f"pattern p(names: float32[n]):\n{lines}")))
    assert len(found) == 3000
    assert found[0].help == "did you mean `names`?"
    assert found[-1].help is None
