"""The one place that says which version this is; the build reads it from here."""

from __future__ import annotations

__version__ = "0.1.0"

TORCH = "2.13"
"""The release of torch that commlang is made for, and measured with."""
