"""The expanded program as columns, who meets whom in it, and its dependency graph."""

from __future__ import annotations

from commlang.program.assemble import assemble, build
from commlang.program.columns import Program

__all__ = ["Program", "assemble", "build"]
