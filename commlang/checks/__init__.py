"""Verdicts on an expanded program; each rule is a module here, its docstring is its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.checks import (
    aliased,
    buffering,
    collective_dtype,
    collective_kind,
    collective_missing,
    collective_reduce_op,
    collective_root,
    collective_size,
    contract_fails,
    contract_meaningless,
    contract_undecided,
    deadlock,
    handle_not_awaited,
    handle_rebound,
    implementation,
    message_dtype,
    message_size,
    mpi_lock,
    nccl_batch_size,
    nccl_first_batch,
    nccl_first_use,
    nccl_halves,
    nccl_in_flight,
    nccl_order,
    nccl_queues,
    nccl_tags,
    nccl_whole_batch,
    nothing_outstanding,
    ordering,
    overlap,
    race,
    swapped,
    temp_outlived,
    undefined_after_reduce,
    uninitialised,
    unmatched_recv,
    unmatched_send,
    unsupported_device,
    unsupported_dtype,
    unsupported_operation,
    unsupported_reduce_op,
    value_out_of_range,
)
from commlang.checks.facts import gather_facts
from commlang.checks.selection import DEFAULT, Selection
from commlang.diagnostics import Severity
from commlang.transports import RENDEZVOUS

if TYPE_CHECKING:
    from commlang.diagnostics import Diagnostic
    from commlang.program import Program
    from commlang.transports import Target

ON_CONTRACTS = (contract_fails, contract_undecided, contract_meaningless)
"""Rules that keep quiet of a pattern with an error of another kind.

What it leaves in its tensors may not even be the same in two runs.
"""

ADVICE = "CL4"
"""What the codes of `speed` begin with: rules that are not even imported unless asked for."""

RULES = (
    handle_rebound,
    handle_not_awaited,
    nothing_outstanding,
    temp_outlived,
    ordering,
    overlap,
    race,
    uninitialised,
    undefined_after_reduce,
    aliased,
    unmatched_send,
    unmatched_recv,
    message_size,
    message_dtype,
    collective_missing,
    collective_kind,
    collective_root,
    collective_reduce_op,
    collective_dtype,
    collective_size,
    unsupported_operation,
    unsupported_dtype,
    unsupported_reduce_op,
    unsupported_device,
    value_out_of_range,
    swapped,
    deadlock,
    implementation,
    buffering,
    nccl_order,
    nccl_first_use,
    nccl_halves,
    nccl_tags,
    nccl_queues,
    nccl_whole_batch,
    nccl_batch_size,
    nccl_first_batch,
    nccl_in_flight,
    mpi_lock,
    *ON_CONTRACTS,
)
"""All rules. Each looks at the program as it is, whatever other rules are asked for."""


def check_program(
    program: Program, target: Target = RENDEZVOUS, selection: Selection = DEFAULT
) -> list[Diagnostic]:
    """All that the selected rules find in a program for a target; empty if it is sound there."""
    facts = gather_facts(program, target)
    found: list[Diagnostic] = []
    for rule in RULES:
        wrong = rule in ON_CONTRACTS and any(d.severity is Severity.ERROR for d in found)
        if selection.wants(rule.RULE.code) and not wrong:
            found += rule.check(facts)
    if selection.wants_some(ADVICE) and facts.everything_meets:
        from commlang.checks import speed

        wanted = (rule for rule in speed.RULES if selection.wants(rule.RULE.code))
        found += [diagnostic for rule in wanted for diagnostic in rule.check(facts)]
    return found
