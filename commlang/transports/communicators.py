"""Which NCCL communicator each operation runs on.

Collectives and batches use the communicator of their group. Unbatched sends and recvs use it too
if the group was made eagerly (`init_process_group(device_id=…)`); else each pair of ranks of a
group gets a communicator of its own at its first use, on which batched messages never meet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.program.matching import match_messages
from commlang.transports.target import NcclInit

if TYPE_CHECKING:
    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.program.matching import Messages
    from commlang.transports.issue import Issue


def meet_untagged(program: Program, issue: Issue, init: NcclInit, tagged: Messages) -> Messages:
    """Who meets whom on NCCL: in issue order per communicator, whatever the tags say.

    `tagged` is who meets whom per tag, which is the same where there are none.
    """
    split = init is NcclInit.LAZY and issue.batched.any()
    if split and not issue.batched[program.is_message].all():
        return match_messages(program, tagged=False, lane=issue.batched.astype(np.int64))
    return match_messages(program, tagged=False) if program.tag.any() else tagged


def communicators(program: Program, issue: Issue, init: NcclInit) -> Array:
    """Per row of `issue.row` the number of its communicator; groups have their own numbers."""
    row = issue.row
    group = program.group[row].astype(np.int64)
    if init is NcclInit.EAGER:
        return group
    pair = paired(program, issue, init)
    rank, peer = program.rank[row].astype(np.int64), program.peer[row].astype(np.int64)
    low, high = np.minimum(rank, peer), np.maximum(rank, peer)
    own = len(program.groups.entries) + (group * program.world + low) * program.world + high
    return np.where(pair, own, group)


def paired(program: Program, issue: Issue, init: NcclInit) -> Array:
    """Which rows of `issue.row` run on a communicator of two ranks, made at its first use."""
    row = issue.row
    if init is NcclInit.EAGER:
        return np.zeros(len(row), dtype=np.bool_)
    return program.is_message[row] & ~issue.batched[row]
