"""From a rank's rows to the order in which its host starts and joins operations."""

from __future__ import annotations

from commlang.schedule.chunks import Chunk
from commlang.schedule.coalesce import Bucket, fused
from commlang.schedule.linear import Act, Action, linearise
from commlang.schedule.passes import Schedule, Scheduled, apply, schedule

__all__ = [
    "Act",
    "Action",
    "Bucket",
    "Chunk",
    "Schedule",
    "Scheduled",
    "apply",
    "fused",
    "linearise",
    "schedule",
]
