"""Patterns that can stand in for a collective are told by their contracts."""

from __future__ import annotations

import pytest

from commlang.errors import PatternError, UsageError
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.transports import Backend, Target
from commlang.tuning.candidates import candidate, candidates, difference, reference
from commlang.tuning.races import races

GLOO = Target(Backend.GLOO, device="cpu")

HEAD = "pattern f(x: dtype[n], n = 8, op = sum, dtype = float32):\n"
ENSURE = "    ensure x == op(old(x) @ r for r in ranks)\n"
BODY = "    all_reduce(x, op=op)\n"


@pytest.mark.parametrize(
    ("collective", "names"),
    [
        (
            "all_reduce",
            {
                "gather_broadcast_all_reduce",
                "halving_doubling_all_reduce",
                "hierarchical_all_reduce",
                "recursive_doubling_all_reduce",
                "ring_all_reduce",
                "star_all_reduce",
                "tree_all_reduce",
            },
        ),
        ("reduce", {"binomial_reduce"}),
        ("all_to_all_single", {"bruck_all_to_all", "pairwise_all_to_all"}),
        ("barrier", set()),
    ],
)
def test_the_library_is_searched(collective: str, names: set[str]) -> None:
    assert set(candidates(collective)) >= names
    assert all(collective.removesuffix("_single") in name for name in candidates(collective))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HEAD + ENSURE + BODY, None),
        (HEAD.replace("op = sum", "op = max, k = 2") + ENSURE + "    ensure k == k\n" + BODY, None),
        (HEAD.replace("x:", "y:") + BODY.replace("x", "y"), "its tensors are not `x: dtype[n]`"),
        (HEAD.replace("x: dtype[n]", "x: float32[n]") + BODY, "its tensors are not `x: dtype[n]`"),
        (HEAD.replace("x: ", "y: dtype[n], x: ") + BODY, "its tensors are not `x: dtype[n]`"),
        (HEAD.replace(", op = sum", "") + "    all_reduce(x)\n", "it has no parameter `op`"),
        (HEAD.replace("n = 8,", "n = 8, k: int,") + BODY, "its parameter `k` has no default"),
        (
            HEAD + "    ensure x == sum(old(x) @ r for r in ranks)\n" + BODY,
            "it does not say `ensure x == op(old(x) @ r for r in ranks)`",
        ),
    ],
)
def test_what_a_pattern_lacks_is_told(text: str, why: str | None) -> None:
    definition = load_module(Source(text)).symbols["f"]
    assert difference(definition, reference("all_reduce")) == why


def test_a_pattern_that_does_something_else_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        candidate("ring_all_gather", "all_reduce")
    assert str(caught.value) == (
        "`ring_all_gather` cannot stand in for `all_reduce`: its tensors are not `x: dtype[n]`"
    )


def test_standard_input_has_no_name_for_a_table() -> None:
    with pytest.raises(UsageError, match="put the one of standard input into a file"):
        candidate("-", "all_reduce")


def test_races_are_as_long_as_asked_for_as_the_world_allows() -> None:
    found, refused = races("all_reduce", [], 3, [1, 100, 110, 4096], "float64", GLOO)
    assert [race.bytes for race in found] == [24, 96, 4080]
    assert {race.world for race in found} == {3}
    assert next(iter(found[0].plans)) == "all_reduce"
    assert {plan.parameters["dtype"] for plan in found[0].plans.values()} == {"float64"}
    assert set(refused) >= {"recursive_doubling_all_reduce", "hierarchical_all_reduce"}
    assert "the ranks must fill whole nodes" in refused["hierarchical_all_reduce"]
    assert not set(refused) & set(found[0].plans)


def test_what_the_backend_cannot_do_itself_is_not_tuned() -> None:
    with pytest.raises(PatternError, match="float8_e4m3fn"):
        races("all_reduce", [], 2, [64], "float8_e4m3fn", GLOO)
