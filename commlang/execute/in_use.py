"""Process groups that a plan runs on now, and those that one has left in disorder."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ReferenceType, ref

from commlang.errors import CommlangError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch.distributed as dist

_running: dict[dist.ProcessGroup, object] = {}
_failed: dict[ReferenceType[dist.ProcessGroup], str] = {}


def occupy(groups: Sequence[dist.ProcessGroup]) -> None:
    """Let nothing else run on groups until they are vacated; UsageError if a plan does now."""
    token = object()
    for group in groups:
        if _running.setdefault(group, token) is not token:
            vacate([other for other in groups if _running.get(other) is token])
            raise UsageError(
                "a plan runs on this process group already, in another thread or in an extern; "
                "operations of two would pair up at random, so give each a group of its own"
            )


def vacate(groups: Sequence[dist.ProcessGroup]) -> None:
    """Let others run on the groups again."""
    for group in groups:
        del _running[group]


def give_up(group: dist.ProcessGroup, why: str) -> None:
    """Let no plan run on the group any more: an operation on it has failed."""
    _failed.setdefault(ref(group, _failed.pop), why)


def refuse_failed(group: dist.ProcessGroup) -> None:
    """Raise CommlangError for a group that was given up: what runs on it would hang, or pair up."""
    if not _failed:
        return
    why = _failed.get(ref(group))
    if why is not None:
        raise CommlangError(
            f"an operation on this process group has failed ({why}), so its ranks are at different "
            "places; destroy it and make another one"
        )
