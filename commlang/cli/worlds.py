"""The worlds that `--world` names, and how far a check of many has come."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 4096
"""Most worlds that one command checks."""


def worlds(text: str) -> tuple[int, ...]:
    """Worlds in order: `8`, `2..64`, every other one of these as `2..64:2`, or a list `4,8,16`."""
    found: set[int] = set()
    for part in text.split(","):
        found |= set(_range(part.strip(), text))
        if len(found) > MOST:
            raise click.BadParameter(f"`{text}` is more than {MOST:,} worlds")
    return tuple(sorted(found))


def _range(part: str, text: str) -> range:
    from commlang.verify.values import MAX_WORLD

    first, dots, rest = part.partition("..")
    last, colon, step = rest.partition(":")
    low = _number(first, text)
    high = _number(last, text) if dots else low
    if high < low:
        raise click.BadParameter(f"`{part}` has no worlds; write the smaller one first")
    if high > MAX_WORLD:
        raise click.BadParameter(f"`{part}`: a world has at most {MAX_WORLD:,} ranks")
    return range(low, high + 1, _number(step, text) if colon else 1)


def _number(text: str, whole: str) -> int:
    from commlang.syntax.literals import number

    try:
        value, unit = number(text.strip())
    except ValueError:
        value, unit = 0, ""
    if unit or not isinstance(value, int) or value < 1:
        hint = "write a whole number from 1 up, `2..64`, `2..64:2` or `4,8,16`"
        raise click.BadParameter(f"`{whole}`: {hint}")
    return value


def progress_line() -> Callable[[str, int, int], None] | None:
    """Shows, on one line of a terminal, how many worlds of a pattern are done; else None."""
    if not sys.stderr.isatty():
        return None

    def show(name: str, done: int, worlds: int) -> None:
        text = f"{name}: {done} of {worlds} worlds" if done < worlds else ""
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()

    return show
