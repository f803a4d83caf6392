"""How `commlang bench` measures: plain data, for which the launcher need not import torch."""

from __future__ import annotations

from commlang.records import record


@record
class BenchSettings:
    """How to measure: `timeout` is in seconds without progress, `check` the number of checked runs.

    `aggregate` runs follow one another between two looks at the clock; `cycles` repeat it all.
    """

    backend: str = "auto"
    device: str = "auto"
    iterations: int = 20
    warmup: int = 1
    check: int = 1
    cycles: int = 1
    aggregate: int = 1
    timeout: float = 60.0
