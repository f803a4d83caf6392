"""What each transport adds to a program: one small model per backend, on one graph."""

from __future__ import annotations

from commlang.transports.target import PORTABLE, RENDEZVOUS, Backend, NcclInit, Target

__all__ = ["PORTABLE", "RENDEZVOUS", "Backend", "NcclInit", "Target"]
