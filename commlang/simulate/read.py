"""Reading what options of a simulation say: costs, stragglers, jitter, algorithms, sweeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.errors import UsageError
from commlang.simulate.noise import Straggler
from commlang.syntax.literals import number

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST = 1000
"""Most points of a sweep, all its parameters together."""
_LONGEST = 200


def costs_of(texts: Iterable[str]) -> dict[str, float]:
    """Seconds by name, from texts such as `forward=3ms`."""
    found: dict[str, float] = {}
    for name, value in _pairs(texts, "--cost", "forward=3ms"):
        if name in found:
            raise UsageError(f"--cost {name}={value}: `{name}` is given twice")
        seconds, unit = _number(value)
        if seconds is None or seconds < 0 or (unit != "s" and seconds):
            raise UsageError(f"--cost {name}={value}: write a duration, as in `--cost {name}=3ms`")
        found[name] = seconds
    return found


def stragglers_of(texts: Iterable[str]) -> tuple[Straggler, ...]:
    """Slow ranks, from texts such as `rank=3:1.5x`; several ranks as `rank=3,5:2x`."""
    found: list[Straggler] = []
    for text in texts:
        ranks, colon, factor = text.removeprefix("rank=").partition(":")
        value, unit = _number(factor.removesuffix("x"))
        listed = [part.strip() for part in ranks.split(",")]
        fit = all(p.isdecimal() and p.isascii() and len(p) < 10 for p in listed)
        if not colon or value is None or unit or not fit:
            raise UsageError(f"--straggler {_short(text)}: write rank=RANK:FACTORx, as rank=3:1.5x")
        found += (Straggler(int(rank), value) for rank in listed)
    return tuple(found)


def part_of(text: str) -> float:
    """A part of one, from `10%` or `0.1`."""
    digits = text.strip()
    value, unit = _number(digits.removesuffix("%").strip())
    if value is None or unit:
        raise UsageError(f"--jitter {_short(text)}: write a part, as 10% or 0.1")
    return value / 100 if digits.endswith("%") else value


def algorithms_of(texts: Iterable[str]) -> dict[str, str]:
    """Algorithms by collective, from texts such as `all_reduce=ring`."""
    found: dict[str, str] = {}
    for name, algorithm in _pairs(texts, "--algorithm", "all_reduce=ring"):
        if name in found:
            raise UsageError(f"--algorithm {name}={_short(algorithm)}: `{name}` is given twice")
        found[name] = algorithm
    return found


def sweeps_of(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Values by name, from texts such as `n=1Mi..1Gi` (doubling), `world=4..64:4` or `op=sum,max`.

    Values stay texts, as `--set` takes them. Raises UsageError, also for more than `MOST` points.
    """
    found: dict[str, tuple[str, ...]] = {}
    points = 1
    for name, value in _pairs(texts, "--sweep", "n=1Mi..1Gi"):
        if name in found:
            raise UsageError(f"--sweep {name}={value}: `{name}` is swept twice")
        values = [v for part in _listed(value) for v in _range(name, part)]
        found[name] = tuple(dict.fromkeys(values))
        points *= len(found[name])
        if points > MOST:
            raise UsageError(f"--sweep {name}={_short(value)}: that makes more than {MOST} points")
    return found


def _listed(text: str) -> list[str]:
    """The parts of a list; commas inside brackets part nothing."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _range(name: str, text: str) -> list[str]:
    first, dots, rest = text.partition("..")
    if not dots:
        if not text:
            raise UsageError(f"--sweep {name}: a value is missing; write {name}=1Ki,4Ki")
        return [text]
    last, colon, step = rest.partition(":")
    low, high, stride = (_whole(part) for part in (first, last, step if colon else "1"))
    if not low or not high or not stride or high < low:
        raise UsageError(
            f"--sweep {name}={_short(text)}: write FIRST..LAST with whole numbers from 1 up, which "
            "doubles, or FIRST..LAST:STEP"
        )
    values: list[int] = []
    while low <= high and len(values) <= MOST:
        values.append(low)
        low = low + stride if colon else 2 * low
    return [str(v) for v in values]


def _whole(text: str) -> int | None:
    value, unit = _number(text)
    return int(value) if value is not None and not unit and value == int(value) else None


def _number(text: str) -> tuple[float | None, str]:
    try:
        value, unit = number(text.strip())
        return float(value), unit
    except (ValueError, OverflowError):
        return None, ""


def _pairs(texts: Iterable[str], option: str, example: str) -> Iterable[tuple[str, str]]:
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name or not value:
            raise UsageError(f"{option} {_short(text)}: write NAME=VALUE, as `{option} {example}`")
        yield name, value


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
