"""Facts of gloo and of torch that the rules CL233 and CL234 rest on."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.execute import aliased_work as work

RIGHT = {
    "all_gather_single, own part",
    "all_gather_single, other part",
    "all_gather, own entry",
    "all_gather, other entry",
    "all_gather, one output",
    "reduce_scatter_single, own part",
    "reduce_scatter_single, other part",
    "reduce_scatter, own entry",
    "all_to_all, onto itself",
}


def test_what_gloo_gets_right_in_place(ranks: Any) -> None:
    found = ranks(work.forms, work.SIZE)
    wrong = {form for answer in found for form, right in answer.items() if not right}
    assert not wrong & RIGHT
    assert {"reduce_scatter, other entry", "reduce, values outlive it"} <= wrong
    # An all_to_all_single onto itself is a matter of timing: it may be wrong on any rank, or none.


def test_torch_refuses_to_copy_between_views_that_overlap_in_part() -> None:
    x = torch.arange(8.0)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x[2:].copy_(x[:6])
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x[2:].add_(x[:6])
    x[:].add_(x[:])
    x[0::2].copy_(x[1::2])
    assert x.tolist() == [2, 2, 6, 6, 10, 10, 14, 14]
