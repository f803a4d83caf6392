"""What ranks of different nodes tell one another besides the work: where they are, and alarms."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from commlang.errors import CommlangError
from commlang.execute.diagnosis import ranks_text
from commlang.execute.report import RankReport, State, from_json, to_json
from commlang.execute.stores import PrefixStore

if TYPE_CHECKING:
    from commlang.execute.stores import Store

_PREFIX = "commlang/bulletin"
_FAREWELL_S = 5.0


class Bulletin:
    """Reports of all ranks, kept in the process group's store.

    `store` must be a connection of its own (`own_connection`): a store serves one call at a time,
    and the rank's main thread may be blocked in one. Every method raises torch's DistStoreError or
    DistNetworkError (both RuntimeErrors) once the store is gone.
    """

    def __init__(self, store: Store, rank: int, world_size: int) -> None:
        self._store = PrefixStore(_PREFIX, store)
        self._rank = rank
        self._world_size = world_size
        self._seen: dict[int, tuple[int, float]] = {}

    def check_in(self, report: RankReport, timeout: float) -> None:
        """Wait until every rank has come; raises CommlangError naming those that have not."""
        self.publish(report)
        self._store.set(f"here/{self._rank}", "")
        if self._store.add("here", 1) == self._world_size:
            self._store.set("all", "")
        with contextlib.suppress(RuntimeError):  # nobody has said so in time
            self._store.wait(["all"], timedelta(seconds=timeout))
        missing = self._missing()
        if missing:
            self._leave_together(self._world_size - len(missing))
            raise CommlangError(
                f"{ranks_text(missing)} of {self._world_size} did not come within {timeout:.0f} s. "
                "Every rank must be started, with the same world size and the same master."
            )

    def _missing(self) -> list[int]:
        """The ranks that have not come; asks once if all have."""
        keys = [f"here/{rank}" for rank in range(self._world_size)]
        if self._store.check(keys):
            return []
        return [rank for rank, key in enumerate(keys) if not self._store.check([key])]

    def _leave_together(self, here: int) -> None:
        """Let all that are here know that one is missing: rank 0 may serve the store to them."""
        self._store.set("all", "")
        if self._rank == 0:
            self.part(here, time.monotonic() + _FAREWELL_S)
        else:
            self._store.add("parted", 1)

    def publish(self, report: RankReport) -> None:
        """Let the other ranks see where this one stands."""
        self._store.set(f"report/{report.rank}", to_json(report))

    def raise_alarm(self) -> None:
        """Tell every rank to end."""
        self._store.set("alarm", "")

    def alarm(self) -> bool:
        """Whether some rank has told all to end."""
        return self._store.check(["alarm"])

    def read(self) -> list[RankReport]:
        """The last report of every rank, each of which has published one before it checked in.

        While a rank runs, its `idle_s` is how long this reader has seen it at one position, as
        clocks differ by node.
        """
        keys = [f"report/{rank}" for rank in range(self._world_size)]
        return [self._aged(from_json(text)) for text in self._store.multi_get(keys)]

    def finish(self) -> None:
        """Wait until every rank is through."""
        if self._store.add("through", 1) == self._world_size:
            self._store.set("over", "")
        while not self._store.check(["over"]):
            time.sleep(0.02)

    def leave(self) -> None:
        """Use the store no more; rank 0, whose node serves it, waits until nobody does."""
        with contextlib.suppress(RuntimeError):  # nothing that is lost now is missed
            if self._rank == 0:
                self.part(self._world_size, time.monotonic() + 10)
            else:
                self._store.add("parted", 1)

    def part(self, parting: int, deadline: float) -> None:
        """Wait until `parting` ranks have read what they need from it."""
        self._store.add("parted", 1)
        # Its host is a process of rank 0's node, maybe rank 0 itself.
        while time.monotonic() < deadline and self._store.add("parted", 0) < parting:
            time.sleep(0.02)

    def _aged(self, report: RankReport) -> RankReport:
        if report.state is not State.RUNNING:
            return report
        position, since = self._seen.get(report.rank, (None, 0.0))
        if position != report.position:
            since = time.monotonic()
            self._seen[report.rank] = (report.position, since)
        return replace(report, idle_s=time.monotonic() - since)
