"""From a rank's rows to the order in which its host starts and joins operations."""

from __future__ import annotations

from commlang.schedule.linear import Act, Action, linearise

__all__ = ["Act", "Action", "linearise"]
