"""A figure that each rank has one of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.records import record

if TYPE_CHECKING:
    from commlang.program.columns import Array


@record
class Spread:
    """The least, the mean and the most over all ranks."""

    min: float
    mean: float
    max: float

    @classmethod
    def of(cls, values: Array) -> Spread:
        """Of one value per rank: (world,), at least one."""
        return cls(float(values.min()), float(values.mean()), float(values.max()))
