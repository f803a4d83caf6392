"""What the ranks of an Executor tell one another when a run fails: who began, and who never came.

A rank whose operation fails knows only that: torch says that it took too long, or that a connection
was closed. So each leaves a note in the group's store, and looks for those of the others.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, TypeVar

from commlang.execute.diagnosis import ranks_text
from commlang.execute.reach import Unreachable, within

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.execute.stores import Store

T = TypeVar("T")
_HEARD_S = 3.0
_PAUSE_S = 0.05
_SLACK_S = 2.0


class Failures:
    """Notes of the ranks of one Executor, in a store; without one, nothing is told or heard."""

    def __init__(self, store: Store | None, prefix: str, rank: int, size: int) -> None:
        self._store = store
        self._prefix = prefix
        self._rank, self._size = rank, size

    def tell(self, said: str, *, cause: bool) -> None:
        """Leave a note, for good; `cause` if the failure is this rank's own."""
        note = json.dumps({"said": said, "cause": cause})

        def leave(store: Store) -> None:
            store.set(self._key(self._rank), note)

        self._ask(leave)

    def hear(self) -> str:
        """What the others' notes add to a failure of this rank, as the end of a clause.

        That is the first rank whose failure is its own, or which ranks nothing is heard of.
        """
        notes = self._ask(self._collect)
        if notes is None:
            return ""
        if begun := [note["said"] for _, note in sorted(notes.items()) if note["cause"]]:
            return f"; before that, {begun[0]}"
        silent = sorted(set(range(self._size)) - {self._rank, *notes})
        if not silent:
            return ""
        return f"; nothing was heard of {ranks_text(silent)}, which may not have come there"

    def _collect(self, store: Store) -> dict[int, Any]:
        deadline = time.monotonic() + _HEARD_S
        notes: dict[int, Any] = {}
        others = [rank for rank in range(self._size) if rank != self._rank]
        while time.monotonic() < deadline:
            for rank in others:
                if rank not in notes and store.check([self._key(rank)]):
                    notes[rank] = json.loads(store.get(self._key(rank)))
            if len(notes) == len(others) or any(note["cause"] for note in notes.values()):
                break
            time.sleep(_PAUSE_S)
        return notes

    def _ask(self, question: Callable[[Store], T]) -> T | None:
        """Ask the store, whose process may be gone, or worse, be there and not answer."""
        store = self._store
        if store is None:
            return None
        try:
            return within(_HEARD_S + _SLACK_S, lambda: (question(store),), "")[0]
        except (Unreachable, RuntimeError):
            return None

    def _key(self, rank: int) -> str:
        return f"{self._prefix}/failed/{rank}"
