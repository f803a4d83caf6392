"""The dumps of one job side by side: which ranks there are, and which are in which group."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from commlang.explain.dump import OURS, WORLD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlang.explain.dump import Dump, Entry, GroupKey


class Job:
    """All dumps of a job.

    `world` is the number of ranks; without it, it is what the dumps list, or one more than the
    highest rank. `learned` gives the ranks of groups that the dumps do not list.
    """

    def __init__(
        self,
        dumps: Mapping[int, Dump],
        world: int | None = None,
        learned: Mapping[GroupKey, tuple[int, ...]] | None = None,
    ) -> None:
        self.dumps = dumps
        self._learned = learned or {}
        listed = [r for d in dumps.values() for key in d.groups for r in key.ranks or ()]
        hinted = [rank for dump in dumps.values() for rank in dump.nameless]
        self.world = world or max([*listed, *hinted, *dumps]) + 1
        everyone = tuple(range(self.world))
        sure = all(dump.nameless == everyone for dump in dumps.values())
        self.world_is_known = world is not None or bool(listed) or sure

    @cached_property
    def calls(self) -> dict[GroupKey, dict[int, dict[int, Entry]]]:
        """Collectives by group, number and rank; of one launch, which share a number, the first."""
        found: dict[GroupKey, dict[int, dict[int, Entry]]] = {key: {} for key in self.groups}
        for rank, dump in self.dumps.items():
            for entry in dump.entries:
                if not entry.is_message:
                    found[entry.group].setdefault(entry.number, {}).setdefault(rank, entry)
        return found

    @cached_property
    def highest(self) -> dict[tuple[int, GroupKey], int]:
        """The number of the last collective that a rank's dump has of a group."""
        return {
            (rank, key): number
            for key, meetings in self.calls.items()
            for number in sorted(meetings)
            for rank in meetings[number]
        }

    @cached_property
    def missing(self) -> tuple[int, ...]:
        """Ranks that left no dump."""
        return tuple(rank for rank in range(self.world) if rank not in self.dumps)

    @cached_property
    def backends(self) -> tuple[str, ...]:
        """The backends of its operations, by name."""
        return tuple(sorted({b for dump in self.dumps.values() for b in dump.backends}))

    @property
    def records_messages(self) -> bool:
        """Whether sends and recvs are in the dumps; gloo's are not."""
        return "gloo" not in self.backends

    @cached_property
    def groups(self) -> dict[GroupKey, str]:
        """Each group with how messages call it."""
        found: dict[GroupKey, str] = {}
        for dump in self.dumps.values():
            for key, group in dump.groups.items():
                found.setdefault(key, _called(key.name, group.description))
        return found

    @cached_property
    def _members(self) -> dict[GroupKey, tuple[tuple[int, ...], bool]]:
        return {key: self._members_of(key) for key in self.groups}

    def members(self, key: GroupKey) -> tuple[int, ...]:
        """The ranks of a group, in its order; those that used it, if the dumps do not list them."""
        return self._members[key][0]

    def is_listed(self, key: GroupKey) -> bool:
        """Whether the ranks of a group are known, and not only those that used it."""
        return self._members[key][1]

    def _members_of(self, key: GroupKey) -> tuple[tuple[int, ...], bool]:
        if key.ranks is not None:
            return key.ranks, True
        descriptions = {d.groups[key].description for d in self.dumps.values() if key in d.groups}
        if WORLD in descriptions:
            return tuple(range(self.world)), True
        if key in self._learned:
            return self._learned[key], True
        return tuple(rank for rank, dump in self.dumps.items() if key in dump.groups), False

    def last_of(self, rank: int) -> Entry | None:
        """The operation that a rank issued last, on any group."""
        entries = self.dumps[rank].entries
        return entries[-1] if entries else None

    def endpoints(self, entry: Entry) -> tuple[int, int]:
        """Source and target of a message as ranks of the world, -1 for one that is unknown."""
        members = self.members(entry.group)
        places = (entry.source, entry.target)
        source, target = (members[p] if 0 <= p < len(members) else -1 for p in places)
        return source, target


def _called(name: str, description: str) -> str:
    if description == WORLD:
        return "the world"
    label = description.removeprefix(OURS)
    if label in ("", "undefined"):
        return f"group {name}"
    return f"group {name} ({label})"
