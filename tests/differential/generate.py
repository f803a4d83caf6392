"""Random patterns, as text: a few phases in a row, at most one of which is made faulty."""

from __future__ import annotations

from tests.differential.collectives import collective, overtaking, several
from tests.differential.meetings import local, meetings
from tests.differential.messages import (
    HELPED,
    branches,
    helpers,
    loop,
    parity,
    ring,
    transfers,
)
from tests.differential.writer import Lines, Writer, indented

SMALL = (1, 2, 3, 4, 5, 8, 17, 64)
LARGE = (4 << 10, 16 << 10, 32 << 10)
HUGE = 256 << 10

HELPERS = """\
pattern around(y: kind[n], x: kind[n], n = 4, kind = float32):
    parallel:
        send(x, dst=ranks.next)
        recv(y, src=ranks.prev)

pattern stuck(y: kind[n], x: kind[n], n = 4, kind = float32):
    recv(y, src=ranks.prev)
    send(x, dst=ranks.next)

pattern down(y: kind[n], x: kind[n], n = 4, kind = float32):
    if rank == 0:
        x -> y
    for r in range(world - 1):
        y @ r -> y @ (r + 1)

"""

_SOUND = (
    *(ring, loop, parity, transfers, branches, helpers, collective, several, meetings, local),
    overtaking,
    *(collective, meetings, meetings),
)
_FAULTY = (ring, loop, branches, helpers, collective, several, overtaking, *[meetings] * 6)


class Pattern(Writer):
    """The file that a seed stands for: `main` in `text`. `faulty` tells what it is meant to be."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        random = self.random
        self.large = random.random() < 0.1
        self.n = random.choice(LARGE if self.large else SMALL)
        if self.large and random.random() < 0.15:
            self.n = HUGE
        self.faulty = random.random() < 0.65
        self.body = self._body()
        self.text = self.written()

    def written(self, ensures: Lines | None = None) -> str:
        """The file, with contracts."""
        head = f"x: {self.dtype}[{2 * self.world}, n], y: {self.dtype}[{max(1, self.rows)}, n]"
        groups = [f"group g{i} = {list(members)}" for i, members in enumerate(self.groups)]
        lines = [f"pattern main({head}, n = {self.n}):"]
        lines += indented([*(ensures or []), *groups, *self.body])
        text = "\n".join(lines) + "\n"
        return (HELPERS if any(f"{name}(" in text for name in HELPED) else "") + text

    def _body(self) -> Lines:
        random = self.random
        count = 1 if self.n == HUGE else random.randint(1, 5)
        wrong = random.randrange(count) if self.faulty else -1
        lines: Lines = []
        for number in range(count):
            phase = random.choice(_FAULTY if number == wrong else _SOUND)
            lines += phase(self, number == wrong)
        random.shuffle(self.late)
        return lines + self.late
