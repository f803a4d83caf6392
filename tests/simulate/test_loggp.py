"""Times by LogGP that can be computed by hand, exactly."""

from __future__ import annotations

import pytest

from commlang.simulate import Straggler
from tests.simulate.cases import ends, switch, times

BOTH = pytest.mark.parametrize("contention", [False, True])

SEND = """\
pattern main(x: uint8[1025]):
    if rank == 0:
        send(x, dst=1)
    if rank == 1:
        recv(x, src=0)
"""


@BOTH
def test_a_message_takes_overhead_latency_bytes_and_overhead(contention: bool) -> None:
    found = times(SEND, 2, contention=contention)
    delivered = 1500 + 2500 + 1024 * 6
    assert ends(found) == [delivered, delivered + 1500]
    assert found.makespan == 11644


@BOTH
def test_a_message_waits_for_whoever_comes_later(contention: bool) -> None:
    text = SEND.replace("        recv", "        compute(20000s)\n        recv")
    found = times(text, 2, contention=contention)
    assert found.timing.start.tolist() == [0, 0, 20000]
    assert found.timing.end.tolist() == [30144, 20000, 31644]
    assert found.ranks.late.tolist() == [20000, 0]


@BOTH
def test_a_message_of_no_bytes_takes_no_bytes_time(contention: bool) -> None:
    found = times(SEND.replace("1025", "0"), 2, contention=contention)
    assert found.makespan == 1500 + 2500 + 1500


@BOTH
def test_a_ring_of_messages_that_start_together_takes_one_step(contention: bool) -> None:
    text = """\
pattern main(x: uint8[1001], y: uint8[1001]):
    parallel:
        send(x, dst=ranks.next)
        recv(y, src=ranks.prev)
"""
    assert ends(times(text, 5, contention=contention)) == [11500.0] * 5


@BOTH
def test_sends_of_one_block_share_the_processor(contention: bool) -> None:
    text = """\
pattern main(x: uint8[1]):
    if rank == 0:
        parallel:
            send(x, dst=1)
            send(x, dst=2)
            send(x, dst=3)
    if rank > 0:
        recv(x, src=0)
"""
    assert ends(times(text, 4, contention=contention)) == [7000, 5500, 7000, 8500]


@BOTH
def test_messages_of_a_channel_follow_one_another(contention: bool) -> None:
    """The second may move g + (k - 1) G after the first."""
    text = """\
pattern main(x: uint8[1001], y: uint8[1001]):
    if rank == 0:
        a = async send(x, dst=1)
        b = async send(y, dst=1)
    if rank == 1:
        a = async recv(x, src=0)
        b = async recv(y, src=0)
    wait(a)
    wait(b)
"""
    found = times(text, 2, contention=contention)
    assert found.timing.end[found.program.kind == 1].tolist() == [11500, 18500]
    assert found.timing.start[:2].tolist() == [0, 1500], "to issue the first takes o"


def test_messages_to_one_rank_queue_for_its_link() -> None:
    text = """\
pattern main(x: uint8[1001], y: uint8[3, 1001]):
    if rank == 0:
        parallel:
            for r in range(1, 4):
                recv(y[r - 1], src=r)
    if rank > 0:
        send(x, dst=0)
"""
    free = times(text, 4, contention=False)
    assert ends(free) == [11500, 10000, 10000, 10000]
    full = times(text, 4, contention=True)
    assert ends(full) == [25500, 10000, 17000, 24000], "g + (k - 1) G apart"
    assert "Contention" in full.bottleneck
    assert "node 0 → device 0" in full.bottleneck


@BOTH
def test_an_eager_message_leaves_without_its_recv(contention: bool) -> None:
    text = SEND.replace("        recv", "        compute(20000s)\n        recv")
    found = times(text, 2, contention=contention, eager=1025)
    assert ends(found) == [1500, 21500]
    assert times(text, 2, contention=contention, eager=1024).makespan == 31644


def test_work_hides_what_is_asynchronous() -> None:
    text = """\
pattern main(x: uint8[1001], z: float32[8]):
    if rank == 0:
        send(x, dst=1)
    if rank == 1:
        work = async recv(x, src=0)
        compute(8000s, reads=[z])
        wait(work)
"""
    found = times(text, 2)
    assert ends(found) == [10000, 11500]
    assert found.ranks.compute.tolist() == [0, 8000]
    assert found.ranks.exposed.tolist() == [10000, 3500]


def test_local_work_takes_what_the_machine_says() -> None:
    text = """\
extern step(x: read float32[n]):
    cost 3s

extern other(x: read float32[n])

pattern main(x: float32[4], y: float32[4]):
    x -> y
    x -> y, op=sum
    scale(x, 2)
    fill(x, 0)
    compute(label="dense", matmul=[5, 10, 20])
    step(x)
    other(x)
"""
    found = times(text, 1)
    spans = (found.timing.end - found.timing.start).tolist()
    assert spans == [64, 96, 64, 32, 20, 3, 0]
    assert found.uncosted == ("other",)
    found = times(text, 1, costs={"dense": 1, "other": 7}, stragglers=[Straggler(0, 2)])
    assert (found.timing.end - found.timing.start).tolist() == [128, 192, 128, 64, 2, 6, 14]
    assert found.uncosted == ()


def test_a_straggler_is_slow_at_both_ends_of_messages() -> None:
    found = times(SEND, 2, stragglers=[Straggler(1, 3)])
    assert ends(found) == [10144, 10144 + 3 * 1500]


def test_jitter_follows_the_seed() -> None:
    text = "pattern main(x: float32[4]):\n    for i in range(1000):\n        compute(1s)\n"
    one, same = (times(text, 1, jitter=0.2, seed=3).makespan for _ in range(2))
    assert one == same
    assert one != times(text, 1, jitter=0.2, seed=4).makespan
    assert one == pytest.approx(1000, rel=0.02), "the mean stays"
    assert times(text, 1, jitter=0, seed=3).makespan == 1000


def test_rank_and_link_totals_of_an_exchange() -> None:
    text = """\
pattern main(x: uint8[1001], y: uint8[1001]):
    temp z: float32[16]
    fill(z, 0)
    parallel:
        send(x, dst=ranks.next)
        recv(y, src=ranks.prev)
"""
    found = times(text, 2, switch(2))
    assert found.ranks.compute.tolist() == [128, 128]
    assert found.ranks.exposed.tolist() == [11500, 11500]
    assert found.link_bytes.tolist() == [1001] * 4
    assert found.peak_memory.tolist() == [2 * 1001 + 64] * 2
    assert found.timing.origin == "simulated on plain"
