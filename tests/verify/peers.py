"""Random patterns of sends and recvs whose peers are formulas of the rank, many of them wrong."""

from __future__ import annotations

import re
from random import Random

OFFSETS = ["1", "1", "2", "k", "k + 1", "world - 1", "1 << k", "g(k)", "world // 2", "-1", "n"]
IN_LOOP = ["s", "s", "s + 1", "1 << s", "2 * s", "k * s", "s * k", "world - s"]
FREE_TESTS = ["k > 2", "k == 1", "world % 2 == 0", "n > 4"]
RANK_TESTS = ["rank % 2 == 0", "rank % 3 == 1", "rank == 0", "rank < k", "place > 0", "last"]
LOOPS = [
    "range(1, world)",
    "range(3)",
    "reversed(range(3))",
    "range(k)",
    "ranks",
    "range(n)",
    "range(rank)",
]

HEAD = """\
let g(a) = 2 * a + 1
let place = (rank - k) % world
let last = rank == world - 1
"""


class Writer:
    """Writes a pattern, by and large with a recv for each send."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.called: list[str] = []

    def module(self) -> str:
        """The text of a module with a pattern `main`."""
        body = [*HEAD.splitlines(), *self.block(0, ())]
        head = "pattern main(x: float32[n], y: float32[n], k = 2, n = 6):"
        return "\n".join([head, *(f"    {line}" for line in body), "", *self.called])

    def block(self, depth: int, loops: tuple[str, ...]) -> list[str]:
        lines: list[str] = []
        for _ in range(self.chance.randint(1, 2)):
            lines += self.item(depth, loops)
        return lines

    def item(self, depth: int, loops: tuple[str, ...]) -> list[str]:
        kinds = ["pair"] * 5 + ["loop", "if", "arms", "call", "arrow", "chain"] * (depth < 2)
        match self.chance.choice(kinds):
            case "loop":
                return [f"for s in {self.loop()}:", *_in(self.block(depth + 1, (*loops, "s")))]
            case "if":
                test = self.chance.choice(FREE_TESTS + RANK_TESTS)
                return [f"if {test}:", *_in(self.block(depth + 1, loops))]
            case "arms":
                lines = self.block(depth + 1, loops)
                other = (
                    lines[::-1]
                    if all(line.startswith(("send", "recv")) for line in lines)
                    else lines
                )
                if self.odd():
                    other = self.block(depth + 1, loops)
                test = self.chance.choice(RANK_TESTS)
                return [f"if {test}:", *_in(lines), "else:", *_in(other)]
            case "call":
                return [self.call()]
            case "arrow":
                a, b = self.chance.choice([("0", "1"), ("world - 1", "0"), ("k", "0")])
                line = f"x @ {a} -> y @ {b}"
                return (
                    [f"if {self.chance.choice(RANK_TESTS)}:", f"    {line}"]
                    if self.odd()
                    else [line]
                )
            case "chain":
                return self.chain(loops)
            case _:
                return self.pair(loops)

    def loop(self) -> str:
        return self.chance.choice(LOOPS[:-1] if self.chance.random() < 0.9 else LOOPS)

    def odd(self) -> bool:
        """Whether to do otherwise than would be right, now and then."""
        return self.chance.random() < 0.15

    def offset(self, loops: tuple[str, ...]) -> str:
        return self.chance.choice(OFFSETS + IN_LOOP * bool(loops))

    def pair(self, loops: tuple[str, ...]) -> list[str]:
        """A send and the recv that meets it, unless one is changed."""
        e = self.offset(loops)
        there, back = self.chance.choice(
            [
                (f"(rank + {e}) % world", f"(rank - ({e})) % world"),
                (f"(rank - ({e})) % world", f"(rank + {e} + world) % world"),
                (f"(ranks.next + {e}) % world", f"(ranks.prev - ({e})) % world"),
                ("ranks.next", "ranks.prev"),
                ("ranks.next", "ranks[(rank - 1) % world]"),
                ("ranks.prev", "(rank + 1) % world"),
                (f"rank ^ ({e})", f"({e}) ^ rank"),
                ("world - 1 - rank", "world - (rank + 1)"),
                (f"({e} - rank) % world", f"({e} - rank) % world"),
                (f"rank + {e}", f"rank - ({e})"),
            ]
        )
        if self.odd():
            back = re.sub(r"\brank\b", "rank + 1", back, count=1)
        tag = self.chance.choice(["", "", ", tag=1", f", tag={loops[-1]}" if loops else ""])
        lines = [f"send(x, dst={there}{tag})"]
        if not self.odd():
            lines.append(f"recv(y, src={back}{'' if self.odd() else tag})")
        if self.odd():
            lines = [f"if {self.chance.choice(FREE_TESTS)}:", f"    {lines[0]}", *lines[1:]]
        return lines

    def chain(self, loops: tuple[str, ...]) -> list[str]:
        """Along the ranks without wrapping round, each end under a guard."""
        e = self.offset(loops)
        ahead, behind = (
            ("ranks.next", "ranks.prev")
            if e == "1" and self.chance.random() < 0.5
            else (f"rank + {e}", f"rank - ({e})")
        )
        low, high = self.chance.choice(
            [
                (f"rank < world - ({e})", f"rank >= {e}"),
                (f"rank + {e} < world", f"rank > {e} - 1"),
                ("0 <= rank < k and rank < k", f"{e} <= rank < k + {e}"),
                ("rank == k", f"rank == k + {e}"),
                ("rank % 2 == 0", "rank % 2 == 1"),
                ("rank != world - 1", "rank != 0"),
                ("place < world - 1", "place > 0"),
            ]
        )
        if self.odd():
            high = re.sub(r"\brank\b", "rank + 1", high)
        ends = [
            f"if {low}:",
            f"    send(x, dst={ahead})",
            f"if {high}:",
            f"    recv(y, src={behind})",
        ]
        if self.odd():
            ends[2] = "else:"
        return ends

    def call(self) -> str:
        """A pattern of its own that does half of a pair, or all of it."""
        name = f"part{len(self.called)}"
        size = self.chance.choice(["n", "n", "m"])  # m is no parameter
        head = f"pattern {name}(x: float32[{size}], y: float32[{size}], k = 1, n = 3):"
        lines = [*HEAD.splitlines(), *self.block(2, ())]
        if size == "m":
            lines = [line.replace("range(n)", "range(m)") for line in lines]
        self.called.append("\n".join([head, *_in(lines), ""]))
        part = self.chance.choice(["", "", "[:3]"])
        return f"{name}(x{part}, y{part}, k={self.chance.choice(['k', 'k + 1', 'world', '3'])})"


def _in(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
