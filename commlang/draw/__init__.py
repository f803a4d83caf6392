"""Pictures of programs: who does what when, and whom it meets."""

from __future__ import annotations

from commlang.draw.subject import Subject
from commlang.draw.views import FORMATS, VIEWS, draw, formats_of, refuse_other

__all__ = ["FORMATS", "VIEWS", "Subject", "draw", "formats_of", "refuse_other"]
