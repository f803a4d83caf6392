"""When a verified program's events happen on a machine, and what keeps it from being faster."""

from __future__ import annotations

from commlang.simulate.model import simulate
from commlang.simulate.noise import Straggler
from commlang.simulate.result import Ranks, Simulation

__all__ = ["Ranks", "Simulation", "Straggler", "simulate"]
