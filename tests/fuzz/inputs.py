"""Inputs for the front end, from well-formed files to noise; each follows from one number."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tests.differential.generate import Pattern
from tests.reference.generate import Writer as Meaningful
from tests.syntax.generate import Writer as Grammatical

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
FILES = [
    path.read_text()
    for folder in ("patterns", "tests/corpus")
    for path in sorted((ROOT / folder).rglob("*.cl"))
]
_TOKEN = re.compile(r'"""|"[^"\n]*"|\w+|->|\*\*|//|<<|>>|[<>=!]=|[^\w\s]|\n *|[ \t]+')
_ODD = (
    *(
        "\t",
        "\r",
        "\f",
        "\x0b",
        "\x00",
        "\ufeff",
        "\u2028",
        "é",
        "→",
        "𝔁",
        "\ud7ff",
        "\\",
        "'",
        "`",
    ),
    *("$", "?", "!", ";", '"', '"""', "#", "(", ")", "[", "]", "{", "}", ":", ",", ".", "..", "@"),
    *("->", "-", "~", "**", "//", "%", "<<", ">>", "=", "==", "0", "1", "-1", "1e6", "1e400"),
    *("9223372036854775807", "4611686018427387904", "1Ti", "1e-3", "0.1", "3ms", "1_0", "0x1"),
    *(
        "rank",
        "world",
        "ranks",
        "old",
        "async",
        "parallel:",
        "sequence:",
        "for",
        "in",
        "if",
        "else",
    ),
    *("let", "temp", "group", "mesh", "wait", "ensure", "require", "preset", "like", "pass"),
    *("send", "recv", "all_reduce", "sum", "max", "premul_sum", "range", "chunks", "reshape"),
    *("\n", "\n    ", "\n        ", "\n  ", " ", "float32", "bool", "int", "true"),
)


def grammar(random: Random) -> bytes:
    """Whatever the grammar allows, mostly without meaning."""
    return Grammatical(random).module().encode()


def meaning(random: Random) -> bytes:
    """Names are bound and kinds fit."""
    return Meaningful(random).file().encode()


def traffic(random: Random) -> bytes:
    """Right patterns, with everything that communicates."""
    return Pattern(random.getrandbits(48)).text.encode()


def tokens(random: Random) -> bytes:
    """A file with some tokens dropped, doubled, swapped or replaced."""
    return _mutated(random, random.choice(FILES), random.randint(1, 6)).encode("utf-8", "replace")


def crossed(random: Random) -> bytes:
    """Lines of one file among those of another."""
    one, other = (random.choice(FILES).splitlines(keepends=True) for _ in range(2))
    for _ in range(random.randint(1, 4)):
        start, at = random.randrange(len(other)), random.randint(0, len(one))
        one[at : at + random.randint(0, 2)] = other[start : start + random.randint(1, 5)]
    return "".join(one).encode()


def numbers(random: Random) -> bytes:
    """A file with other numbers, huge ones too."""
    text = random.choice(FILES)
    large = ("0", "1", "-1", "7", "1Ki", "1Mi", "1Gi", "4Ti", "1e9", "4611686018427387903", "0.5")
    return re.sub(
        r"\b\d+(Ki|Mi|k)?\b",
        lambda m: random.choice(large) if random.random() < 0.3 else m[0],
        text,
    ).encode()


def deep(random: Random) -> bytes:
    """Something nested or repeated far more often than anyone writes it."""
    count = random.choice((30, 99, 101, 1000, 5000))
    made = random.choice((
        lambda: f"pattern f(x: float32[4]):\n    let a = {'(' * count}1{')' * count}\n",
        lambda: f"pattern f(x: float32[4]):\n    let a = {'-' * count}1\n",
        lambda: f"pattern f(x: float32[4]):\n    let a = {'1 + ' * count}1\n",
        lambda: f"pattern f(x: float32[4]):\n    let a = {'2 ** ' * min(count, 99)}2\n",
        lambda: f"pattern f(x: float32[4]):\n    let a = x{'[:]' * count}\n",
        lambda: f"pattern f(x: float32[4]):\n    let a = x{'.flatten()' * count}\n",
        lambda: f"pattern f(x: float32[4]):\n    let a = {'[' * count}\n",
        lambda: f"pattern f(x: float32[4]):\n    let a = {'not ' * count}true\n",
        lambda: "pattern f(x: float32[4]):\n" + "".join(
            f"{'    ' * (i + 1)}for i{i} in range(2):\n" for i in range(min(count, 300))
        ) + "    " * (min(count, 300) + 1) + "pass\n",
        lambda: f"pattern f(x: float32[4]):\n    pass{' #' * count}\n" + "\n" * count,
        lambda: "pattern f(x: float32[4]):\n" + "    fill(x, 1)\n" * count,
        lambda: "".join(f"pattern f{i}(x: float32[4]):\n    f{i + 1}(x)\n" for i in range(200)),
        lambda: "pattern f(x: float32[4], " + ", ".join(f"a{i} = {i}" for i in range(count)) + ")",
        lambda: f"pattern f(x: float32[{'4, ' * count}4]):\n    pass\n",
        lambda: f"pattern f(x: float32[4]):\n    let {'a' * count} = {'9' * count}\n",
    ))  # fmt: skip
    return made().encode()


def noise(random: Random) -> bytes:
    """A file with some bytes changed, or bytes alone."""
    if random.random() < 0.2:
        return random.randbytes(random.randint(0, 400))
    data = bytearray(random.choice(FILES).encode())
    for _ in range(random.randint(1, 8)):
        at = random.randrange(len(data) + 1)
        pick = random.random()
        if pick < 0.35:
            data[at : at + 1] = bytes([random.randrange(32, 127)])
        elif pick < 0.4:
            data[at : at + 1] = random.randbytes(1)
        elif pick < 0.6:
            data[at:at] = bytes(random.choices(range(9, 127), k=random.randint(1, 4)))
        elif pick < 0.8:
            del data[at : at + random.randint(1, 30)]
        else:
            data[at:at] = random.choice(_ODD).encode("utf-8", "replace")
    return bytes(data)


def _mutated(random: Random, text: str, times: int) -> str:
    parts = _TOKEN.findall(text)
    for _ in range(times):
        at = random.randrange(len(parts))
        other = random.randrange(len(parts))
        pick = random.random()
        if pick < 0.2:
            del parts[at]
        elif pick < 0.35:
            parts.insert(at, parts[at])
        elif pick < 0.55:
            parts[at], parts[other] = parts[other], parts[at]
        elif pick < 0.75:
            parts[at] = parts[other]
        elif pick < 0.9:
            parts[at] = random.choice(_ODD)
        else:
            parts.insert(at, random.choice(_ODD))
        if not parts:
            return ""
    return "".join(parts)


KINDS: dict[str, Callable[[Random], bytes]] = {
    "grammar": grammar,
    "meaning": meaning,
    "traffic": traffic,
    "tokens": tokens,
    "crossed": crossed,
    "numbers": numbers,
    "deep": deep,
    "noise": noise,
}


def write(seed: int) -> tuple[str, bytes]:
    """The kind and the input of a seed."""
    kind = list(KINDS)[seed % len(KINDS)]
    return kind, KINDS[kind](Random(seed))
