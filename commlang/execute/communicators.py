"""The process groups of a plan: created on all ranks in one order, with one timeout."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.distributed as dist

from commlang.errors import CommlangError, UsageError
from commlang.execute.report import first_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from commlang.plan import Plan

_parked: list[dist.ProcessGroup] = []
"""Groups with collectives under way: gloo's destructor would wait for them, with the GIL held."""


class Communicators:
    """Process groups by the plan's numbers: 0 is the caller's, as are those of `lent`.

    The others are made here. Of `lent`, None is a group of the caller's that this rank is no
    member of. Where the caller's group is not the whole world, only its own ranks take part.
    `turn` tells the groups of two plans on one group apart. Raises CommlangError if a group
    cannot be made.
    """

    def __init__(
        self,
        plan: Plan,
        base: dist.ProcessGroup,
        timeout: timedelta,
        turn: int,
        lent: Mapping[int, dist.ProcessGroup | None] | None = None,
    ) -> None:
        self._base = base
        self._timeout = timeout
        self._ranks = dist.get_process_group_ranks(base)
        lent = {0: base, **(lent or {})}
        self._lent = {number: group for number, group in lent.items() if group is not None}
        self._groups = dict(self._lent)
        self.lent = list(dict.fromkeys(self._lent.values()))
        """The caller's groups, each once; they stay."""
        self._apart = len(self._ranks) < dist.get_world_size()
        self.own = [n for n, group in enumerate(plan.groups) if group.used and n not in lent]
        """The numbers of the groups that are made here, by whichever ranks; equal on all."""
        if self.own and self._apart:
            _refuse_split(base)
        try:
            for number in self.own:
                name = f"commlang/{base.group_name}/{turn}/{number}"
                self._create(number, plan.groups[number].ranks, plan.groups[number].label, name)
        except BaseException:
            self.abandon(pending=False)
            raise

    def _create(self, number: int, ranks: tuple[int, ...], label: str, name: str) -> None:
        members = [self._ranks[rank] for rank in ranks]
        member = dist.get_rank() in members
        if self._apart and not member:
            return
        try:
            made = make_group(self._base, members, label, name, self._timeout)
        except RuntimeError as error:
            raise CommlangError(
                f"group `{label}` of ranks {list(ranks)} could not be made: {first_line(error)}"
            ) from error
        if member:
            self._groups[number] = made

    def __getitem__(self, number: int) -> dist.ProcessGroup:
        return self._groups[number]

    @property
    def made(self) -> list[dist.ProcessGroup]:
        """The groups that were made here and that this rank is a member of."""
        return [group for number, group in self._groups.items() if number not in self._lent]

    def close(self) -> None:
        """Destroy the groups that were made here; the caller's stay."""
        for group in reversed(self.made):
            dist.destroy_process_group(group)
        self._groups = dict(self._lent)

    def abandon(self, *, pending: bool) -> None:
        """Destroy them after a failure: without waiting, and telling peers that still wait.

        A group is taken apart as its last reference goes, which closes its connections. If
        collectives are `pending` that would block until they time out, so the reference is kept.
        """
        for group in reversed(self.made):
            with contextlib.suppress(RuntimeError):
                group.abort()
            with contextlib.suppress(RuntimeError, ValueError):
                dist.destroy_process_group(group)
            if pending:
                _parked.append(group)
        self._groups = dict(self._lent)


def make_group(
    base: dist.ProcessGroup, members: list[int], label: str, name: str, timeout: timedelta
) -> dist.ProcessGroup:
    """A group of some ranks of the world, in their order, with the backend of `base`.

    All ranks of the world make it together if `base` is the world, else its members alone do,
    for whom `name` tells it from all others. Raises RuntimeError if they do not meet.
    """
    options = {"timeout": timeout, "group_desc": f"commlang:{label}"}
    backend = dist.get_backend(base)
    if dist.get_world_size(base) == dist.get_world_size():
        new_group = cast("Any", dist).new_group  # which numbers groups that all make together
        return new_group(members, backend=backend, sort_ranks=False, **options)
    return _among_members(members, backend, name, options)


def _among_members(
    members: list[int], backend: str, name: str, options: dict[str, Any]
) -> dist.ProcessGroup:
    """As `new_group(use_local_synchronization=True)` does it, but under a name of our own.

    torch makes that name from the number of groups that a process has. Where ranks have
    different ones they would never meet; where a group was destroyed they would meet at the
    stale addresses that it left in the store.
    """
    c10d = cast("Any", dist.distributed_c10d)
    world = c10d._world
    _, store = world.pg_map[c10d._get_default_group()]
    place = members.index(dist.get_rank())
    made, _ = c10d._new_process_group_helper(
        len(members), place, members, backend, store, name, **options
    )
    world.pg_group_ranks[made] = {rank: place for place, rank in enumerate(members)}
    return made


def _refuse_split(base: dist.ProcessGroup) -> None:
    """NCCL splits an eagerly made world with all of its ranks; those outside `base` never come."""
    if _eager() and "nccl" in dist.get_backend_config(base):
        raise UsageError(
            "this plan makes subgroups of a group that is not the whole world, which NCCL cannot "
            "do once init_process_group was given device_id=; leave device_id out"
        )


def _eager() -> bool:
    """Whether the world's communicator was made at once, by `device_id=`."""
    return getattr(dist.group.WORLD, "bound_device_id", None) is not None


def backend_of(group: dist.ProcessGroup, device: torch.device) -> str:
    """The backend that moves a group's tensors on such a device; raises UsageError if none does."""
    known = _backends(group)
    if device.type not in known:
        config = dist.get_backend_config(group)
        raise UsageError(f"the group ({config}) moves no tensors on {device.type}")
    return known[device.type]


def backend_here() -> str | None:
    """The backend of the default group for the device that it would use; None without a group."""
    if not dist.is_initialized() or dist.group.WORLD is None:
        return None
    return backend_of(dist.group.WORLD, device_of(dist.group.WORLD))


def device_of(group: dist.ProcessGroup) -> torch.device:
    """The device to use if nobody says: CUDA where the group has NCCL for it, else the CPU."""
    known = _backends(group)
    if "cpu" not in known or (known.get("cuda") == "nccl" and torch.cuda.is_available()):
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def timeout_of(group: dist.ProcessGroup, device: torch.device) -> timedelta:
    """How long an operation of a group may wait; torch's default if its backend does not say."""
    backend = cast("Any", group)._get_backend(device)
    options = getattr(backend, "options", None)
    return getattr(options, "_timeout", dist.distributed_c10d.default_pg_timeout)


def _backends(group: dist.ProcessGroup) -> dict[str, str]:
    """Backends by device type: a group may have one for each."""
    parts = (part.partition(":") for part in dist.get_backend_config(group).split(","))
    return {device: backend for device, _, backend in parts}
