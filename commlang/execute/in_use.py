"""Process groups that a plan runs on now, and those that one has left in disorder."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, NoReturn
from weakref import ReferenceType, WeakKeyDictionary, ref

from commlang.errors import CommlangError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import torch.distributed as dist

_locks: WeakKeyDictionary[dist.ProcessGroup, Lock] = WeakKeyDictionary()
_making = Lock()
given_up: dict[ReferenceType[dist.ProcessGroup], str] = {}
"""Why, of each group on which nothing may run any more."""


def locks_of(groups: Iterable[dist.ProcessGroup]) -> list[Lock]:
    """Of each group a lock, which whoever runs a plan on it holds."""
    with _making:
        return [_locks.setdefault(group, Lock()) for group in groups]


def refuse_busy(locks: Sequence[Lock], taken: Lock) -> NoReturn:
    """Release those before `taken`, and raise UsageError, as a plan runs on its group."""
    for lock in locks:
        if lock is taken:
            break
        lock.release()
    raise UsageError(
        "a plan runs on this process group already, in another thread or in an extern; "
        "operations of two would pair up at random, so give each a group of its own"
    )


def give_up(group: dist.ProcessGroup, why: str) -> None:
    """Let no plan run on the group any more: an operation on it has failed."""
    given_up.setdefault(ref(group, given_up.pop), why)


def refuse_failed(group: dist.ProcessGroup) -> None:
    """Raise CommlangError for a group that was given up: what runs on it would hang, or pair up."""
    why = given_up.get(ref(group))
    if why is not None:
        raise CommlangError(
            f"an operation on this process group has failed ({why}), so its ranks are at different "
            "places; destroy it and make another one"
        )
