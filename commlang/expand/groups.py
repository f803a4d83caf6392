"""The table of groups: every communicator of a program, in order of creation."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from commlang.expand.arrays import Array, Int


@record
class GroupEntry:
    """One communicator: the name it was given and its members, as ranks of the world."""

    label: str
    members: tuple[int, ...]


class GroupTable:
    """Groups by number; number 0 is the world.

    Two statements make two groups even of the same members, as two calls of `new_group` would;
    one statement met again (in a loop) with the same members means the same group.
    """

    def __init__(self, world: int, entries: Iterable[GroupEntry] = ()) -> None:
        self.world = world
        self.entries: list[GroupEntry] = [GroupEntry("world", tuple(range(world)))]
        self._numbers = {("world", self.entries[0].members): 0}
        self._lists: _Lists | None = None
        for entry in entries:
            self.add(entry.label, entry.members)

    def add(self, label: str, members: Sequence[int]) -> int:
        """The number of the group of that label and members, made if it is new."""
        key = (label, tuple(members))
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.entries)
            self.entries.append(GroupEntry(*key))
        return number

    def size(self, gid: Int) -> Int:
        """How many members a group has."""
        if isinstance(gid, int):
            return len(self.entries[gid].members)
        return self._all().size[gid]

    def member(self, gid: Int, i: Int) -> Int:
        """The world's rank of member i (which must be in range)."""
        if isinstance(gid, int):
            if gid == 0:
                return i
            if isinstance(i, int):
                return self.entries[gid].members[i]
            return np.asarray(self.entries[gid].members, dtype=np.int64)[i]
        lists = self._all()
        return lists.member[lists.start[gid] + i]

    def position(self, gid: Int, rank: Int) -> Int:
        """The place of a rank of the world in a group, -1 if it is no member."""
        if isinstance(gid, int) and gid == 0:
            return rank
        lists = self._all()
        wanted = np.asarray(gid * self.world + rank)
        at = np.minimum(np.searchsorted(lists.key, wanted), len(lists.key) - 1)
        found = np.where(lists.key[at] == wanted, lists.place[at], -1)
        return found if found.ndim else int(found)

    def _all(self) -> _Lists:
        """All groups as flat arrays, made anew when a group is new."""
        if self._lists is None or len(self._lists.size) != len(self.entries):
            self._lists = _Lists.of(self.entries, self.world)
        return self._lists


@record
class _Lists:
    """Members of all groups one after the other, and sorted by (group, rank) for look-up.

    `key` is group times world plus rank, `place` the rank's place in the group. What this holds
    grows with the members of the groups, not with their number times the world.
    """

    size: Array
    start: Array
    member: Array
    key: Array
    place: Array

    @classmethod
    def of(cls, entries: Sequence[GroupEntry], world: int) -> _Lists:
        size = np.array([len(e.members) for e in entries], dtype=np.int64)
        start = np.cumsum(size) - size
        member = np.fromiter(chain.from_iterable(e.members for e in entries), dtype=np.int64)
        number = np.repeat(np.arange(len(size)), size)
        key = number * world + member
        order = np.argsort(key, kind="stable")
        place = np.arange(len(member)) - np.repeat(start, size)
        return cls(size, start, member, key[order], place[order])
