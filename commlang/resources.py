"""Where the grammar and the pattern library lie.

A wheel carries them inside the package (`commlang/_data`); in a checkout, installed editable or
not at all, they are the top-level folders beside it. `importlib.resources` could tell, but its
import costs more than the rest of this module, on every `commlang lint`.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_PACKAGED = _PACKAGE / "_data"
_ROOT = _PACKAGED if _PACKAGED.is_dir() else _PACKAGE.parent


def grammar_path() -> Path:
    """The Lark grammar, `commlang.lark`."""
    return _ROOT / "grammar" / "commlang.lark"


def parser_table_path() -> Path:
    """The LALR table built from the grammar, `commlang.table`; loading it beats building it."""
    return grammar_path().with_suffix(".table")


def patterns_dir() -> Path:
    """The folder of the shipped pattern library."""
    return _ROOT / "patterns"
