"""The ranks of a group agree on a plan before it runs, and part from one another after it.

They meet in the group's store and not in a collective, so that a rank that never comes is named
instead of being waited for. One verdict is decided, by the rank that arrives last or by the first
whose patience ends, and every rank, however late, is told that verdict.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch.distributed as dist

from commlang.errors import CommlangError
from commlang.execute.failures import Failures
from commlang.execute.report import first_line

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from datetime import timedelta

Card = dict[str, str]
"""What a rank is about to run, in words; equal on all ranks that may run together."""


class Said(NamedTuple):
    """What a rank brings to a meeting: its card, and whether it waits in every collective."""

    card: Card
    waits: bool


_AGREED = "agreed"
_ALL_WAIT = "agreed, and all wait"
_alone = count(1)


class Agreement:
    """One meeting of all ranks of a group; every rank of it makes as many, in the same order.

    `turn` counts a rank's meetings on the group. It is kept in the store, so that ranks that use
    other groups besides, or other numbers of them, still agree on it.
    """

    def __init__(self, group: dist.ProcessGroup, timeout: timedelta) -> None:
        self._group = group
        self._timeout = timeout
        self._rank, self._size = dist.get_rank(group), dist.get_world_size(group)
        self._store: Any = None if _is_fake(group) else _store_of(group)
        self.turn = next(_alone) if self._store is None else self._counted()

    def meet(self, card: Card, *, waits: bool = False) -> bool:
        """Check that all ranks hold the same card; raises CommlangError that names who does not.

        Returns whether all ranks say that they `waits`.
        """
        said_here = Said(card, waits)
        if self._store is None:
            said = _compare(self._gathered(said_here))
        else:
            with self._reaching_the_store():
                said = self._verdict(said_here)
        if said not in (_AGREED, _ALL_WAIT):
            raise CommlangError(said)
        return said == _ALL_WAIT

    @property
    def failures(self) -> Failures:
        """Where the ranks that met here tell one another of a failure."""
        return Failures(self._store, f"commlang/{self.turn}", self._rank, self._size)

    def part(self, *, wait: bool) -> None:
        """Wait, but no longer than the timeout, until all ranks have come here.

        A rank that has failed does not `wait`, and is not waited for.
        """
        if self._store is None:
            return
        with contextlib.suppress(RuntimeError):  # too late to matter: this rank's part is done
            if self._store.add(self._key("left"), 1) == self._size:
                self._store.set(self._key("all-left"), "")
            if wait:
                with contextlib.suppress(RuntimeError):
                    self._store.wait([self._key("all-left")], self._timeout)
            self._last_one_out("left", "all-left")

    def _counted(self) -> int:
        with self._reaching_the_store():
            return self._store.add(f"commlang/turns/{self._rank}", 1)

    @contextlib.contextmanager
    def _reaching_the_store(self) -> Generator[None]:
        try:
            yield
        except RuntimeError as error:
            raise CommlangError(
                f"rank {self._rank} cannot reach the store in which the ranks meet "
                f"({first_line(error)}); the process that serves it has probably ended"
            ) from error

    def _verdict(self, own: Said) -> str:
        store = self._store
        store.set(self._key(f"card/{self._rank}"), json.dumps(own))
        if store.add(self._key("arrived"), 1) == self._size:
            self._decide(self._cards())
        try:
            store.wait([self._key("verdict")], self._timeout)
        except RuntimeError:
            self._decide(self._cards())
        said = store.get(self._key("verdict")).decode()
        cards = [f"card/{rank}" for rank in range(self._size)]
        self._last_one_out("arrived", "verdict", *cards)
        return said

    def _cards(self) -> list[Said | None]:
        """What every rank said, None for those that have not come."""
        keys = [self._key(f"card/{rank}") for rank in range(self._size)]
        store = self._store
        return [Said(*json.loads(store.get(key))) if store.check([key]) else None for key in keys]

    def _decide(self, cards: list[Said | None]) -> None:
        """Set the verdict, unless another rank has."""
        here = [card for card in cards if card is not None]
        absent = [rank for rank, card in enumerate(cards) if card is None]
        seconds = self._timeout.total_seconds()
        pattern = here[0].card["pattern"]
        said = (
            f"{ranks_text(absent)} did not enter the Executor of `{pattern}` within {seconds:g} s "
            "of the others; every rank of the group has to"
        )
        if not absent:
            said = _compare(here)
        self._store.compare_set(self._key("verdict"), "", said)

    def _last_one_out(self, *names: str) -> None:
        """Delete keys that all ranks have read: a long run leaves none behind."""
        if self._store.add(self._key(f"done/{names[0]}"), 1) == self._size:
            for name in (*names, f"done/{names[0]}"):
                self._store.delete_key(self._key(name))

    def _key(self, name: str) -> str:
        return f"commlang/{self.turn}/{name}"

    def _gathered(self, own: Said) -> list[Said]:
        """Without a store (MPI has none) a collective has to do; fake ranks hold no cards."""
        if _is_fake(self._group):
            return [own]
        cards: list[Any] = [None] * self._size
        cast("Any", dist).all_gather_object(cards, own, group=self._group)
        return cards


def _compare(said: Sequence[Said]) -> str:
    """That they agree, or which ranks hold another card than most, and how the first differs."""
    cards = [each.card for each in said]
    texts = [json.dumps(card, sort_keys=True) for card in cards]
    usual, _ = Counter(texts).most_common(1)[0]
    odd = [rank for rank, text in enumerate(texts) if text != usual]
    if not odd:
        return _ALL_WAIT if all(each.waits for each in said) else _AGREED
    rest = [rank for rank, text in enumerate(texts) if text == usual]
    mine, theirs = cards[odd[0]], cards[rest[0]]
    differ = [key for key in theirs if mine.get(key) != theirs[key]]
    told = "; ".join(f"{key} {mine.get(key)}, not {theirs[key]}" for key in differ[:3])
    which = f"rank {odd[0]} has " if len(odd) > 1 else ""
    verb = "runs" if len(odd) == 1 else "run"
    return f"{ranks_text(odd)} {verb} another plan than {ranks_text(rest)}: {which}{told}"


def ranks_text(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 0, 1`, `ranks 0, 1, 2, 3, … (64 of them)`."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    shown = ", ".join(map(str, ranks[:8]))
    return f"ranks {shown}" + (f", … ({len(ranks)} of them)" if len(ranks) > 8 else "")


def _is_fake(group: dist.ProcessGroup) -> bool:
    """Whether this is torch's stand-in for ranks that are not there, whose store holds nothing."""
    return "fake" in dist.get_backend_config(group)


def _store_of(group: dist.ProcessGroup) -> Any:
    found = cast("Any", dist.distributed_c10d)._get_process_group_store(group)
    return found if isinstance(found, dist.Store) else None  # pyright: ignore[reportPrivateImportUsage]
