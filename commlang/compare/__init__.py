"""Patterns side by side: what each sends, keeps, takes and is proven to do."""

from __future__ import annotations

from commlang.compare.column import Column, Failed, On, column
from commlang.compare.proofs import Proofs, prove
from commlang.compare.spread import Spread
from commlang.compare.subjects import Choice, Subject, chosen, subjects

__all__ = [
    "Choice",
    "Column",
    "Failed",
    "On",
    "Proofs",
    "Spread",
    "Subject",
    "chosen",
    "column",
    "prove",
    "subjects",
]
