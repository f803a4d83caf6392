"""An import that leads nowhere (CL106).

There is no such file, or the file has no pattern or extern of that name. Without leading dots a
file is looked for beside the importing one and then in the pattern library; one dot means the
file's own folder, each further dot the folder above.

`commlang list` shows what the library has. What a file imports itself can be imported from it.

- [Files and imports](language.md#files-and-imports)
"""

from __future__ import annotations

from commlang.checks.rule import Rule
from commlang.diagnostics import Severity

RULE = Rule(
    "CL106",
    "import",
    Severity.ERROR,
    invalid=(
        """\
from ring_all_reduce import ring_reduce  # CL106

pattern main(x: float32[n], n = 8):
    ring_reduce(x)
""",
    ),
    valid=(
        """\
from ring_all_reduce import ring_all_reduce

pattern main(x: float32[n], n = 8):
    ring_all_reduce(x)
""",
    ),
)
