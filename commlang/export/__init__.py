"""Checked patterns as programs that need no commlang."""

from __future__ import annotations

from commlang.export.script import export_python

__all__ = ["export_python"]
