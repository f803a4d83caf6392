"""Advice on speed (CL4), for those who ask for it: what is right, and could be faster."""

from __future__ import annotations

from commlang.checks.speed import (
    blocking_before_compute,
    flat_across_nodes,
    gather_of_one,
    gloo_on_cuda,
    head_of_line,
    list_form,
    many_small,
    needless_barrier,
    own_chunk,
    star,
    sum_of_gathered,
)

RULES = (
    many_small,
    blocking_before_compute,
    sum_of_gathered,
    own_chunk,
    gather_of_one,
    list_form,
    needless_barrier,
    star,
    head_of_line,
    gloo_on_cuda,
    flat_across_nodes,
)
