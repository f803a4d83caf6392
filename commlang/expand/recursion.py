"""Room for expressions as deep as the parser lets them be."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

_LIMIT = 20_000
"""Frames; what is evaluated is bounded by MAX_DEPTH, here and in the parser."""


@contextmanager
def deep_recursion() -> Generator[None]:
    """Raise Python's limit on recursion for a while, unless it is higher already."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
