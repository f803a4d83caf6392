"""What operations cost beside their data, as measured on gloo; the assumption behind all numbers.

Two processes of one machine over loopback, torch 2.13, messages of 1 KiB. Other transports have
other numbers, and the same order: a call costs more than a kilobyte.
"""

from __future__ import annotations

MESSAGE_MS = 0.31
"""A blocking message, by the exchange of two."""
POSTED_MS = 0.033
"""A message that is posted with others, in a batch or asynchronously."""
COLLECTIVE_MS = 0.7
"""A blocking collective: a hundred all_reduces took 71 ms, one of all their data 0.9 ms."""
POSTED_COLLECTIVE_MS = 0.6
"""The same, asynchronous: 62 ms."""
SMALL = 64 << 10
"""Bytes up to which the call is most of the cost."""
LARGE = 1 << 20
"""Bytes from which on the data are most of the cost."""


def milliseconds(value: float) -> str:
    """`0.9 ms`, `71 ms`."""
    return f"{value:.2g} ms" if value < 10 else f"{value:,.0f} ms"


def size(count: int) -> str:
    """`4 B`, `1 KiB`, `2.5 MiB`."""
    number, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if number < 1024:
            break
        number, unit = number / 1024, larger
    return f"{number:.3g} {unit}"
