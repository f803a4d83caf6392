"""A parameter without a value, or a value without a parameter (CL121).

A parameter that has no default must be given: by `--set`, by a preset, by the caller, or by the
shape of a tensor that is given. And what is given must be one of the pattern's parameters.

Give it a default, with which the pattern is also checked and shown, or a preset.

- [Parameters](language.md#parameters), [presets](language.md#presets)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL121",
    "no-value",
    Severity.ERROR,
    invalid=(
        """\
# pattern: main
pattern main(x: float32[n], k: int, n = 8):  # CL121
    fill(x[:k], 0)
""",
    ),
    valid=(
        """\
# pattern: main
pattern main(x: float32[n], k: int = 2, n = 8):
    fill(x[:k], 0)
""",
    ),
)
