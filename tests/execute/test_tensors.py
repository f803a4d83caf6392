"""The Executor with tensors as programs have them: in place, in other modes, changed meanwhile."""

from __future__ import annotations

from typing import Any

from tests.execute import tensors_work as work


def test_uneven_parts_may_be_exchanged_onto_themselves_on_gloo(ranks: Any) -> None:
    assert ranks(work.exchanged_in_place, 2) == [[True] * 8] * 2


def test_runs_in_inference_mode_and_outside_of_it_mix(ranks: Any) -> None:
    assert ranks(work.inference, 2) == [[[4.0] * 8, [3.0] * 8]] * 2


def test_runs_in_the_background_are_in_the_callers_mode(ranks: Any) -> None:
    (found,) = ranks(work.modes, 1)
    assert found == [(True, False), (False, False), (False, True), (True, False)]


def test_tensors_that_were_transposed_or_freed_since_they_were_bound_are_refused(
    ranks: Any,
) -> None:
    for transposed, freed, back in ranks(work.changed, 2):
        assert transposed.startswith("tensor `x` is not contiguous")
        assert freed.startswith("the memory of tensor `x` was freed")
        assert back == ""
