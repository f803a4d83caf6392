"""A machine that runs a program as NCCL does: hosts issue, queues serve, batches are one operation.

It takes what each host does from the schedule that the executor runs, and knows nothing of points,
edges or cycles.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from commlang.operations import Kind
from commlang.schedule import Act, linearise

if TYPE_CHECKING:
    from commlang.program import Program
    from commlang.schedule import Action

INWARD = (Kind.REDUCE, Kind.GATHER)
OUTWARD = (Kind.BROADCAST, Kind.SCATTER)


@dataclass(eq=False)
class Operation:
    """What a queue serves: the rows of a batch, or one."""

    rank: int
    rows: list[int]
    batched: bool
    fence: int
    """How many of its rank's joined operations it starts after."""
    started: bool = False
    ended: bool = False
    before: Operation | None = None


@dataclass(eq=False)
class Host:
    """One rank's thread: what it has yet to do, and the operations that its stream waits for."""

    rank: int
    actions: list[Action]
    next: int = 0
    joined: list[Operation] = field(default_factory=list[Operation])
    known: set[Any] = field(default_factory=set[Any])
    at: Any = None
    """The communicator whose making it waits for."""
    syncs: int = 0
    """How many joined operations it waits for before it goes on."""


class Streams:
    """Runs until nothing moves. `loose` rooted collectives promise only their data."""

    def __init__(
        self,
        program: Program,
        *,
        lazy: bool = False,
        one_queue: bool = False,
        whole: bool = False,
        loose: bool = False,
    ) -> None:
        self.program, self.lazy, self.one_queue = program, lazy, one_queue
        self.whole, self.loose = whole, loose
        self.kind = [Kind(k) for k in program.kind.tolist()]
        self.hosts = [
            Host(rank, linearise(program, rank, lambda: program)) for rank in range(program.world)
        ]
        self.batched = self._batched()
        self.partner = self._partners()
        self.meeting = self._meetings()
        self.of_row: dict[int, Operation] = {}
        self.queues: dict[Any, Operation] = {}
        self.operations: list[Operation] = []
        self._issue_all()

    def _issue_all(self) -> None:
        moved = True
        while moved:
            moved = False
            for host in self.hosts:
                moved = self._host(host) or moved
            for operation in self.operations:
                moved = self._serve(operation) or moved
        self.stuck = any(host.next < len(host.actions) for host in self.hosts) or not all(
            operation.ended for operation in self.operations
        )

    # ---------------------------------------------------------------- hosts

    def _host(self, host: Host) -> bool:
        """Issue as much as the host can; whether it did anything."""
        moved = False
        while host.next < len(host.actions):
            if not all(operation.ended for operation in host.joined[: host.syncs]):
                return moved
            action = host.actions[host.next]
            if self.lazy and not self._ready(host, action):
                return moved
            host.next += 1
            moved = True
            self._perform(host, action)
        return moved

    def _ready(self, host: Host, action: Action) -> bool:
        """Whether the communicator of an unbatched message is made, with both ranks there."""
        row = action.row
        unbatched = action.act in (Act.RUN, Act.START) and self.kind[row].is_message
        if not unbatched:
            return True
        key = self._communicator(row)
        if key in host.known:
            return True
        peer = self.hosts[int(self.program.peer[row])]
        host.at = key
        if peer.at == key or key in peer.known:
            host.known.add(key)
            peer.known.add(key)
            return True
        return False

    def _perform(self, host: Host, action: Action) -> None:
        if action.act is Act.JOIN:
            host.joined += [self.of_row[row] for row in action.rows]
            rows = list(action.rows)
        elif action.act is Act.BATCH:
            rows = [row for row in action.rows if not self.kind[row].is_local]
            by_group: dict[int, list[int]] = defaultdict(list)
            for row in rows:
                if self.kind[row].is_message:
                    by_group[int(self.program.group[row])].append(row)
            new = [self._issue(host, by_group[group], True) for group in sorted(by_group)]
            new += [self._issue(host, [r], False) for r in rows if not self.kind[r].is_message]
            host.joined += new
        elif self.kind[action.row].is_local:
            return
        else:
            rows = [action.row] if action.act is Act.RUN else []
            operation = self._issue(host, [action.row], False)
            host.joined += [operation] * len(rows)
        if any(self.kind[row] is Kind.BARRIER for row in rows):
            host.syncs = len(host.joined)

    def _issue(self, host: Host, rows: list[int], batched: bool) -> Operation:
        operation = Operation(host.rank, rows, batched, len(host.joined))
        key = (host.rank, "all" if self.one_queue else self._communicator(rows[0]))
        operation.before = self.queues.get(key)
        self.queues[key] = operation
        self.operations.append(operation)
        self.of_row |= dict.fromkeys(rows, operation)
        return operation

    def _communicator(self, row: int) -> Any:
        group = int(self.program.group[row])
        if self.lazy and self.kind[row].is_message and row not in self.batched:
            ends = sorted((int(self.program.rank[row]), int(self.program.peer[row])))
            return (group, *ends)
        return group

    # --------------------------------------------------------------- queues

    def _serve(self, operation: Operation) -> bool:
        if operation.ended:
            return False
        if not operation.started:
            joined = self.hosts[operation.rank].joined[: operation.fence]
            behind = operation.before is not None and not operation.before.ended
            if behind or not all(other.ended for other in joined):
                return False
            operation.started = True
            return True
        if not all(self._can_end(row) for row in operation.rows):
            return False
        operation.ended = True
        return True

    def _started(self, row: int) -> bool:
        return row in self.of_row and self.of_row[row].started

    def _can_end(self, row: int) -> bool:
        kind = self.kind[row]
        if kind.is_message:
            if self.whole:
                return all(self._started(other) for other in self._tied(row))
            return self._started(self.partner.get(row, -1))
        there = self.meeting[row]
        root = int(self.program.peer[row])
        at_root = root == int(self.program.rank[row])
        if self.loose and kind in OUTWARD and there:
            return at_root or all(
                self._started(r) for r in there if int(self.program.rank[r]) == root
            )
        if self.loose and kind in INWARD and there and not at_root:
            return True
        return bool(there) and all(self._started(other) for other in there)

    def _tied(self, row: int) -> set[int]:
        """All rows that batches tie to a message, over any number of messages."""
        found: set[int] = set()
        todo = [row]
        while todo:
            here = todo.pop()
            if here in found:
                continue
            found.add(here)
            todo.append(self.partner.get(here, -1))
            todo += self.batched.get(here, [])
            if here == -1:
                return {-1}
        return found

    # ------------------------------------------------------------- matching

    def _batched(self) -> dict[int, list[int]]:
        """For each message of a batch, all messages of it."""
        found: dict[int, list[int]] = {}
        for host in self.hosts:
            for action in host.actions:
                if action.act is not Act.BATCH:
                    continue
                messages = [row for row in action.rows if self.kind[row].is_message]
                for row in messages:
                    group = self.program.group[row]
                    found[row] = [r for r in messages if self.program.group[r] == group]
        return found

    def _partners(self) -> dict[int, int]:
        """Messages meet in the order of rows on a communicator; tags are ignored."""
        program = self.program
        ends: dict[Any, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for row, kind in enumerate(self.kind):
            if not kind.is_message:
                continue
            me, peer = int(program.rank[row]), int(program.peer[row])
            ways = (me, peer) if kind is Kind.SEND else (peer, me)
            lane = self.lazy and row in self.batched
            ends[int(program.group[row]), lane, ways][kind is Kind.RECV].append(row)
        found: dict[int, int] = {}
        for sends, recvs in ends.values():
            for send, recv in zip(sends, recvs, strict=False):
                found[send], found[recv] = recv, send
        self.unmet = sum(len(s) != len(r) for s, r in ends.values())
        return found

    def _meetings(self) -> dict[int, list[int]]:
        """For each collective call, the calls that meet it; [] if some member never calls."""
        program = self.program
        calls: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for row, kind in enumerate(self.kind):
            if kind.is_collective:
                calls[int(program.group[row])][int(program.rank[row])].append(row)
        found: dict[int, list[int]] = {}
        for group, by_rank in calls.items():
            members = program.groups.entries[group].members
            for rows in by_rank.values():
                for turn, row in enumerate(rows):
                    there = [by_rank[m][turn] for m in members if turn < len(by_rank.get(m, []))]
                    found[row] = there if len(there) == len(members) else []
        return found
