"""The process groups of a plan: created on all ranks in one order, with the world's timeout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch.distributed as dist

from commlang.errors import CommlangError, UsageError

if TYPE_CHECKING:
    from datetime import timedelta

    from commlang.plan import Plan


class Communicators:
    """Process groups by the plan's numbers. Those made here are destroyed by `close`."""

    def __init__(self, plan: Plan, base: dist.ProcessGroup, timeout: timedelta | None) -> None:
        self.base = base
        self._made: list[dist.ProcessGroup] = []
        self._groups: dict[int, dist.ProcessGroup] = {0: base}
        ranks = dist.get_process_group_ranks(base)
        if len(ranks) != plan.world:
            raise UsageError(
                f"the plan is for {plan.world} ranks, the process group has {len(ranks)}"
            )
        apart = len(ranks) < dist.get_world_size()
        for number, group in enumerate(plan.groups):
            if number and group.used:
                members = [ranks[r] for r in group.ranks]
                self._create(number, members, group.label, timeout, apart)

    def _create(
        self,
        number: int,
        members: list[int],
        label: str,
        timeout: timedelta | None,
        apart: bool,
    ) -> None:
        """All ranks of the base call this; where the base is not the world, only members do."""
        me = dist.get_rank()
        if apart and me not in members:
            return
        made = dist.new_group(
            members,
            timeout=timeout,
            use_local_synchronization=apart,
            group_desc=f"commlang:{label}",
            sort_ranks=False,
        )
        if made is not None and me in members:
            self._groups[number] = made
            self._made.append(made)

    def __getitem__(self, number: int) -> dist.ProcessGroup:
        return self._groups[number]

    def close(self) -> None:
        """Destroy the groups that were made here; the caller's group stays."""
        for group in reversed(self._made):
            dist.destroy_process_group(group)
        self._made.clear()


def compare_fingerprints(plan: Plan, base: dist.ProcessGroup, seconds: float, turn: int) -> None:
    """Check that all ranks run this plan; names the ranks that run another or never came.

    Ranks meet in the group's store, not in a collective, so that one that is missing is named
    after `seconds` instead of being waited for.
    """
    from datetime import timedelta

    store = dist.distributed_c10d._get_process_group_store(base)  # pyright: ignore
    rank, size = dist.get_rank(base), dist.get_world_size(base)
    keys = [f"commlang/plan/{turn}/{other}" for other in range(size)]
    store.set(keys[rank], plan.fingerprint)
    try:
        store.wait(keys, timedelta(seconds=seconds))
    except (RuntimeError, ValueError):
        absent = [other for other, key in enumerate(keys) if not store.check([key])]
        if absent:
            names = ", ".join(map(str, absent))
            raise CommlangError(
                f"rank {names} did not start `{plan.pattern}` within {seconds:.0f} s; "
                "every rank of the group must create the Executor"
            ) from None
    other_plans = [o for o, k in enumerate(keys) if store.get(k).decode() != plan.fingerprint]
    if other_plans:
        names = ", ".join(map(str, other_plans))
        raise CommlangError(
            f"rank {names} runs another plan of `{plan.pattern}` than rank {rank}: the files, "
            "the parameters or the versions of commlang differ"
        )
