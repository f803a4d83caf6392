"""From measured ping-pong, one collective and local work to the description of a machine."""

from __future__ import annotations

from commlang.calibrate.fit import Figures, fit
from commlang.calibrate.machine import machine_of
from commlang.calibrate.model import Samples
from commlang.calibrate.text import text_of

__all__ = ["Figures", "Samples", "fit", "machine_of", "text_of"]
