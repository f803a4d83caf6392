"""Random communication programs: every rank gets its part of the same meetings, then shuffled."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

GROUPS = {2: ((0, 1),), 3: ((0, 1), (1, 2)), 4: ((0, 1, 2), (2, 3))}


class Traffic:
    """Writes a pattern with one block per rank; few are right, many hang, some lack a partner."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.world = random.choice((2, 3, 3, 4))
        self.handles = 0
        self.text = self._file()

    def _file(self) -> str:
        lines = ["pattern main(x: float32[n], y: float32[n], n = 4):"]
        for number, members in enumerate(GROUPS[self.world]):
            lines.append(f"    group g{number} = {list(members)}")
        parts: list[list[str]] = [[] for _ in range(self.world)]
        for number in range(self.random.randint(1, 7)):
            self._meeting(parts, number)
        for rank, part in enumerate(parts):
            self._disturb(part)
            lines += [
                f"    if rank == {rank}:",
                *(f"        {s}" for s in self._shape(part) or ["pass"]),
            ]
        return "\n".join(lines) + "\n"

    def _meeting(self, parts: list[list[str]], number: int) -> None:
        """One message or collective, in the part of each rank that takes part."""
        if self.random.random() < 0.6:
            a, b = self.random.sample(range(self.world), 2)
            tag = self.random.choice(("", ", tag=1"))
            parts[a].append(f"send(x, dst={b}{tag})")
            parts[b].append(f"recv(y, src={a}{tag})")
            return
        everyone = tuple(range(self.world))
        group = self.random.randrange(len(GROUPS[self.world]) + 1)
        members = everyone if group == 0 else GROUPS[self.world][group - 1]
        on = "" if group == 0 else f", group=g{group - 1}"
        root = self.random.choice(members)
        form = self.random.choice(
            ("all_reduce(x{})", "broadcast(x, src={1}{0})", "reduce(x, dst={1}{0})", "gather")
        )
        for member in members:
            line = form.format(on, root)
            if form == "gather":
                listed = f", [y for r in range({len(members)})]" if member == root else ""
                line = f"gather(x{listed}, dst={root}{on})"
            parts[member].append(line)

    def _disturb(self, part: list[str]) -> None:
        while len(part) > 1 and self.random.random() < 0.45:
            i = self.random.randrange(len(part) - 1)
            part[i], part[i + 1] = part[i + 1], part[i]
        if part and self.random.random() < 0.05:
            del part[self.random.randrange(len(part))]

    def _shape(self, part: list[str]) -> list[str]:
        """Some statements side by side, in sequence, or asynchronous."""
        lines: list[str] = []
        rest = list(part)
        waits: list[str] = []
        while rest:
            size = min(len(rest), self.random.randint(1, 3))
            here, rest = rest[:size], rest[size:]
            roll = self.random.random()
            if roll < 0.25:
                lines += ["parallel:", *self._children(here)]
            elif roll < 0.5:
                handle = f"h{self.handles}"
                self.handles += 1
                lines += [f"{handle} = async {here[0]}", *here[1:]]
                waits.append(f"wait({handle})")
            else:
                lines += here
            while waits and self.random.random() < 0.5:
                lines.append(waits.pop(self.random.randrange(len(waits))))
        self.random.shuffle(waits)
        return lines + waits

    def _children(self, part: list[str]) -> list[str]:
        lines: list[str] = []
        while part:
            size = min(len(part), self.random.randint(1, 2))
            here, part = part[:size], part[size:]
            if self.random.random() < 0.4:
                inner = here
                if self.random.random() < 0.4:
                    inner = ["parallel:", *(f"    {line}" for line in here)]
                lines += ["    sequence:", *(f"        {line}" for line in inner)]
            else:
                lines += [f"    {line}" for line in here]
        return lines
