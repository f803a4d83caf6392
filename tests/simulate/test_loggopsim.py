"""Examples that LogGOPSim publishes, to the digit, with its default parameters.

Hoefler, Schneider, Lumsdaine, LogGOPSim: Simulating large-scale applications in the LogGOPS model,
2010; https://github.com/spcl/LogGOPSim. Its messages of up to 65535 bytes are eager.
"""

from __future__ import annotations

import pytest

from tests.simulate.cases import ends, times

BOTH = pytest.mark.parametrize("contention", [False, True])

# README.md, "Simple usage example": binomialtreereduce of 1024 bytes on 8 hosts.
REDUCE = """\
pattern main(x: uint8[1024], y: uint8[1024]):
    for half in [4, 2, 1]:
        if rank >= half and rank < 2 * half:
            send(x, dst=rank - half)
        if rank < half:
            recv(y, src=rank + half)
"""

# src/LogGOPSim/binary_tree_32.goal: messages of one byte down a binomial tree.
BROADCAST = """\
pattern main(x: uint8[1]):
    for step in [1, 2, 4, 8, 16]:
        if rank < step:
            send(x, dst=rank + step)
        if rank >= step and rank < 2 * step:
            recv(x, src=rank - step)
"""


@BOTH
def test_the_readme_s_reduction(contention: bool) -> None:
    found = times(REDUCE, 8, contention=contention, eager=65535)
    assert ends(found) == [34914, 24776, 13138, 13138, 1500, 1500, 1500, 1500]


@BOTH
def test_with_rendezvous_only_the_senders_end_later(contention: bool) -> None:
    """A blocking send of commlang ends when the message is there; LogGOPSim's, after o."""
    found = times(REDUCE, 8, contention=contention)
    assert ends(found) == [34914, 33414, 21776, 21776, 10138, 10138, 10138, 10138]


@BOTH
def test_the_binary_tree_of_the_repository(contention: bool) -> None:
    found = ends(times(BROADCAST, 32, contention=contention, eager=65535))
    first = {1: 0, 2: 1500, 4: 3000, 8: 4500, 16: 6000}
    last = {r: start + 5500 for r, start in first.items()}  # where a leaf's recv ends
    assert found[16] == last[16] == 11500
    # A rank sends in turn from when it has received: o apart, each 5500 on its way.
    assert [found[r] for r in (17, 24, 28, 30, 31)] == [15500, 15500, 19500, 23500, 27500]
    assert max(found) == 27500
    assert found[0] == 7500
