"""What options of `commlang simulate` may say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from commlang.errors import UsageError
from commlang.simulate import Straggler
from commlang.simulate.read import algorithms_of, costs_of, part_of, stragglers_of, sweeps_of

if TYPE_CHECKING:
    from collections.abc import Callable


def test_costs_stragglers_jitter_and_algorithms() -> None:
    assert costs_of(["forward=3ms", "b = 1.5us"]) == {"forward": 0.003, "b": pytest.approx(1.5e-6)}
    assert costs_of(["free=0"]) == {"free": 0}
    assert stragglers_of(["rank=3:1.5x", "4,5:2"]) == (
        Straggler(3, 1.5),
        Straggler(4, 2),
        Straggler(5, 2),
    )
    assert (part_of("10%"), part_of("0.25"), part_of("0")) == (0.1, 0.25, 0)
    assert algorithms_of(["all_reduce=ring"]) == {"all_reduce": "ring"}


def test_sweeps_double_or_step_or_list() -> None:
    assert sweeps_of(["n=1Ki..4Ki", "world=4..8:2", "op=sum,max"]) == {
        "n": ("1024", "2048", "4096"),
        "world": ("4", "6", "8"),
        "op": ("sum", "max"),
    }
    assert sweeps_of(["sizes=[1, 2],[3, 4]"]) == {"sizes": ("[1, 2]", "[3, 4]")}


@pytest.mark.parametrize(
    ("read", "text", "told"),
    [
        (costs_of, "forward", "--cost forward: write NAME=VALUE, as `--cost forward=3ms`"),
        (costs_of, "forward=3", "write a duration, as in `--cost forward=3ms`"),
        (costs_of, "forward=-3ms", "write a duration"),
        (costs_of, "forward=1e999s", "write a duration"),
        (stragglers_of, "3", "--straggler 3: write rank=RANK:FACTORx"),
        (stragglers_of, "rank=-1:2x", "write rank=RANK:FACTORx"),
        (stragglers_of, "rank=1:2ms", "write rank=RANK:FACTORx"),
        (stragglers_of, "rank=" + "9" * 5000 + ":2x", "write rank=RANK:FACTORx"),
        (sweeps_of, "n", "--sweep n: write NAME=VALUE"),
        (sweeps_of, "n=4..1", "write FIRST..LAST with whole numbers from 1 up"),
        (sweeps_of, "n=0..4", "write FIRST..LAST"),
        (sweeps_of, "n=1..8:0", "write FIRST..LAST"),
        (sweeps_of, "n=1,,2", "a value is missing"),
        (sweeps_of, "n=1..9999999:1", "that makes more than 1000 points"),
    ],
)
def test_what_makes_no_sense(read: Callable[[list[str]], Any], text: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        read([text])
    assert told in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_name_is_given_once() -> None:
    with pytest.raises(UsageError, match="`a` is given twice"):
        costs_of(["a=1s", "a=2s"])
    with pytest.raises(UsageError, match="`all_reduce` is given twice"):
        algorithms_of(["all_reduce=ring", "all_reduce=tree"])
    with pytest.raises(UsageError, match="`n` is swept twice"):
        sweeps_of(["n=1", "n=2"])
    with pytest.raises(UsageError, match="more than 1000 points"):
        sweeps_of(["n=1..64:1", "m=1..64:1"])
    with pytest.raises(UsageError, match="write a part"):
        part_of("much")
