"""Traces of runs: Chrome's trace events, which Perfetto shows, and back to a program's times."""

from __future__ import annotations

from commlang.trace.clocks import Clock, RankTrace
from commlang.trace.read import Trace, read_trace
from commlang.trace.write import check_path, runs_to_keep, write_trace

__all__ = [
    "Clock",
    "RankTrace",
    "Trace",
    "check_path",
    "read_trace",
    "runs_to_keep",
    "write_trace",
]
