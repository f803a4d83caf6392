"""The table of groups: every communicator of a program, in order of creation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from commlang.expand.arrays import Array, Int


@dataclass(frozen=True, slots=True)
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
        self._positions: list[Array] = [np.arange(world)]
        self._stacked: tuple[int, Array, Array, Array] | None = None
        for entry in entries:
            self.add(entry.label, entry.members)

    def add(self, label: str, members: Sequence[int]) -> int:
        """The number of the group of that label and members, made if it is new."""
        key = (label, tuple(members))
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.entries)
            self.entries.append(GroupEntry(*key))
            position = np.full(self.world, -1, dtype=np.int64)
            position[list(members)] = np.arange(len(members))
            self._positions.append(position)
        return number

    def size(self, gid: Int) -> Int:
        """How many members a group has."""
        if isinstance(gid, int):
            return len(self.entries[gid].members)
        return self._stack()[1][gid]

    def member(self, gid: Int, i: Int) -> Int:
        """The world's rank of member i (which must be in range)."""
        if isinstance(gid, int):
            if gid == 0:
                return i
            if isinstance(i, int):
                return self.entries[gid].members[i]
            return np.asarray(self.entries[gid].members, dtype=np.int64)[i]
        return self._stack()[2][gid, i]

    def position(self, gid: Int, rank: Int) -> Int:
        """The place of a rank of the world in a group, -1 if it is no member."""
        if isinstance(gid, int):
            if gid == 0:
                return rank
            found = self._positions[gid][rank]
            return found if isinstance(rank, np.ndarray) else int(found)
        return self._stack()[3][gid, rank]

    def _stack(self) -> tuple[int, Array, Array, Array]:
        """Sizes, members and positions of all groups as arrays, made anew when a group is new."""
        if self._stacked is None or self._stacked[0] != len(self.entries):
            sizes = np.array([len(e.members) for e in self.entries], dtype=np.int64)
            members = np.zeros((len(sizes), int(sizes.max())), dtype=np.int64)
            for row, entry in zip(members, self.entries, strict=True):
                row[: len(entry.members)] = entry.members
            self._stacked = (len(sizes), sizes, members, np.stack(self._positions))
        return self._stacked
