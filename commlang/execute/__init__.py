"""Running a plan on real ranks; the only part of commlang that imports torch."""

from __future__ import annotations
