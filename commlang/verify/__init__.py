"""From a file to a verdict: which pattern, in which world, with which parameters, and is it sound?

The command line and the Python interface ask the same questions here.
"""

from __future__ import annotations

from commlang.verify.cases import Case, Choice, cases
from commlang.verify.choose import choose_pattern, find_pattern
from commlang.verify.lint import Options, lint_module, lint_source
from commlang.verify.locate import locate_source, split_target
from commlang.verify.outcome import Outcome
from commlang.verify.values import parse_settings, parse_value, preset_values
from commlang.verify.worlds import default_world

__all__ = [
    "Case",
    "Choice",
    "Options",
    "Outcome",
    "cases",
    "choose_pattern",
    "default_world",
    "find_pattern",
    "lint_module",
    "lint_source",
    "locate_source",
    "parse_settings",
    "parse_value",
    "preset_values",
    "split_target",
]
