"""What is claimed of all worlds holds in each one that is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

import pytest

from commlang.errors import PatternError
from commlang.program import build
from commlang.program.matching import match_messages
from commlang.resolve.check import check_all
from commlang.resolve.modules import Definition, load_module
from commlang.source import Source
from commlang.verify.affine import Matching, matching
from tests.verify.peers import Writer

PATTERNS = Path(__file__).parents[2] / "patterns"
WORLDS = (*range(1, 14), 16, 24, 40)
SEEDS = 300


def definition(text: str) -> Definition:
    """The pattern `main` of a text; statements alone get a pattern around them."""
    if "pattern main" not in text:
        head = "pattern main(x: float32[n], y: float32[n], k = 2, root = 0, n = 6):\n"
        text = head + indent(text, "    ")
    module = load_module(Source(text + "\n", "peers.cl"))
    assert check_all(module) == []
    return module.symbols["main"]


@dataclass
class Tried:
    """In how many worlds a pattern expands to messages, and in which ones some do not meet."""

    worlds: int
    lone: list[int]


def try_worlds(pattern: Definition) -> Tried:
    tried = Tried(0, [])
    for world in WORLDS:
        try:
            program = build(pattern, world, {})
        except PatternError:
            continue
        messages = match_messages(program)
        tried.worlds += bool(len(messages.send) or len(messages.lone))
        if len(messages.lone):
            tried.lone.append(world)
    return tried


def test_what_is_proven_of_random_patterns_holds_in_every_world() -> None:
    proven = telling = wrong = 0
    for seed in range(SEEDS):
        text = Writer(seed).module()
        pattern = definition(text)
        claim, tried = matching(pattern), try_worlds(pattern)
        if claim is Matching.PROVEN:
            assert tried.lone == [], f"seed {seed}:\n{text}"
            proven += 1
            telling += tried.worlds >= 3
        wrong += bool(tried.lone)
    assert telling >= 0.15 * SEEDS, (proven, telling)
    assert wrong >= 0.15 * SEEDS, wrong


def test_of_the_library_too() -> None:
    proven: set[str] = set()
    for path in sorted(PATTERNS.rglob("*.cl")):
        module = load_module(Source.read(path))
        for name in module.exported:
            pattern = module.symbols[name]
            if matching(pattern) is Matching.PROVEN:
                proven.add(path.stem)
                assert try_worlds(pattern).lone == [], name
    rings = {f"ring_{name}" for name in ("all_reduce", "all_gather", "reduce_scatter", "attention")}
    assert proven >= rings | {"bruck_all_to_all", "tree_all_reduce", "gpipe", "send_recv"}


CLAIMS = {
    "a ring": "send(x, dst=ranks.next)\nrecv(y, src=(rank - 1) % world)",
    "a ring by places": "send(x, dst=ranks[(rank - 1) % world])\nrecv(y, src=ranks.next)",
    "even ranks first": """\
if rank % 2 == 0:
    send(x, dst=ranks.next)
    recv(y, src=ranks.prev)
else:
    recv(y, src=ranks.prev)
    send(x, dst=ranks.next)""",
    "a chain": """\
if rank > 0:
    recv(y, src=rank - 1)
if rank < world - 1:
    send(x, dst=rank + 1)""",
    "a chain that starts at the root": """\
let place = (rank - root) % world
if place > 0:
    recv(y, src=ranks.prev)
if place < world - 1:
    send(x, dst=ranks.next)""",
    "all pairs": """\
for s in range(1, world):
    parallel:
        send(x, dst=(rank + s) % world)
        recv(y, src=(rank - s) % world)""",
    "halves of a loop": """\
for s in range(k):
    h[s] = async send(x, dst=(rank + s * k + 1) % world, tag=s)
for t in range(k):
    recv(y, src=(rank - k * t - 1) % world, tag=t)
wait(h)""",
    "neighbours": """\
if rank % 2 == 0:
    send(x, dst=rank + 1)
else:
    recv(y, src=rank - 1)""",
    "partners": "for i in range(log2(world)):\n    send(x, dst=rank ^ (1 << i))\n"
    "    recv(y, src=(1 << i) ^ rank)",
    "opposites": "send(x, dst=world - 1 - rank)\nrecv(y, src=world - rank - 1)",
    "an arrow": "for r in ranks[1:]:\n    x @ r -> y @ 0",
    "on a condition": "if k > 1 and world > 2:\n    send(x, dst=ranks.next)\n"
    "    recv(y, src=ranks.prev)",
    "in two patterns": """\
pattern main(x: float32[n], n = 6):
    give(x, 2)
    take(x, 2)

pattern give(x: float32[n], d: int):
    send(x, dst=(rank + d) % world)

pattern take(x: float32[n], d: int):
    recv(x, src=(rank - d) % world)""",
}


@pytest.mark.parametrize("text", CLAIMS.values(), ids=CLAIMS)
def test_these_are_proven(text: str) -> None:
    pattern = definition(text)
    assert matching(pattern) is Matching.PROVEN
    tried = try_worlds(pattern)
    assert tried.worlds >= 4
    assert tried.lone == []


NO_CLAIMS = {
    "no recv": "send(x, dst=ranks.next)",
    "the wrong way": "send(x, dst=ranks.next)\nrecv(y, src=ranks.next)",
    "another tag": "send(x, dst=ranks.next, tag=1)\nrecv(y, src=ranks.prev)",
    "a tag of the rank": "send(x, dst=ranks.next, tag=rank)\nrecv(y, src=ranks.prev, tag=rank)",
    "some ranks only": """\
if rank % 2 == 0:
    send(x, dst=ranks.next)
    recv(y, src=ranks.prev)""",
    "a chain that misses a rank": """\
if rank > 1:
    recv(y, src=rank - 1)
if rank < world - 1:
    send(x, dst=rank + 1)""",
    "a chain that wraps round": """\
if rank > 0:
    recv(y, src=ranks.prev)
if rank >= 0:
    send(x, dst=ranks.next)""",
    "another loop": """\
for s in range(k):
    send(x, dst=(rank + s + 1) % world)
for s in range(k + 1):
    recv(y, src=(rank - s - 1) % world)""",
    "as often as the rank says": """\
for s in range(rank):
    send(x, dst=ranks.next)
    recv(y, src=ranks.prev)""",
    "different conditions": """\
if k > 1:
    send(x, dst=ranks.next)
if k > 2:
    recv(y, src=ranks.prev)""",
    "an arrow that one end does not run": "if rank == 0:\n    x @ 0 -> y @ 1",
    "sizes bound by a tensor": """\
pattern main(x: float32[n], n = 6):
    give(x[:4])
    take(x[:2])

pattern give(x: float32[m], m = 4):
    for s in range(m):
        send(x, dst=ranks.next)

pattern take(x: float32[m], m = 4):
    for s in range(m):
        recv(x, src=ranks.prev)""",
    "sizes that are no parameters": """\
pattern main(x: float32[n], n = 6):
    give(x[:4])
    take(x[:2])

pattern give(x: float32[m]):
    for s in range(m):
        send(x, dst=ranks.next)

pattern take(x: float32[m]):
    for s in range(m):
        recv(x, src=ranks.prev)""",
    "a name bound again": """\
let d = 1
send(x, dst=(rank + d) % world)
for d in range(2, 3):
    recv(y, src=(rank - d) % world)""",
    "remainders that are taken too early": """\
send(x, dst=(rank % 2 + 1) % world)
recv(y, src=(rank % 2 - 1) % world)""",
}


@pytest.mark.parametrize("text", NO_CLAIMS.values(), ids=NO_CLAIMS)
def test_these_are_not(text: str) -> None:
    pattern = definition(text)
    assert matching(pattern) is Matching.OPEN
    tried = try_worlds(pattern)
    assert tried.worlds == 0 or tried.lone, "if they meet after all, this shows nothing"


def test_without_messages_there_is_nothing_to_prove() -> None:
    assert matching(definition("all_reduce(x)\nx -> y")) is Matching.NO_MESSAGES


def test_a_text_that_is_too_deep_is_left_open() -> None:
    text = "pattern main(x: float32[n], n = 6):\n    f0(x)\n\n" + "\n".join(
        f"pattern f{i}(x: float32[n], n = 6):\n    f{i + 1}(x)\n    f{i + 1}(x)\n"
        for i in range(25)
    )
    text += "\npattern f25(x: float32[n], n = 6):\n    x @ 0 -> x @ 1"
    assert matching(definition(text)) is Matching.OPEN
    short = text.replace("\n    f0(x)\n", "\n    f20(x)\n")
    assert matching(definition(short)) is Matching.PROVEN
