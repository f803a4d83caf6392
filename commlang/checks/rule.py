"""A rule: a code, a name, a page and the examples that show and test it.

A rule is one module of this folder. Its docstring is the page that `commlang rule CODE` prints:
first a line `Title (CODE).`, then what it finds, why that matters and how to mend it, with links
to the documentation or reports that it rests on. It holds `RULE` and a function
`check(facts) -> Iterator[Diagnostic]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.records import record

if TYPE_CHECKING:
    from commlang.diagnostics import Severity


@record
class Rule:
    """What is known of a rule besides its page.

    `invalid` and `valid` are whole pattern files. A line on which a finding of an invalid one
    stands ends in a comment `# CL201`; comment lines `# world: 2`, `# backend: nccl` and
    `# nccl-init: eager` at the top say for what it is checked (else 4 ranks and no backend), and
    `# device: cuda` where the tensors are, `# torch: 2.7` the release of torch and
    `# ranks-per-node: 2` how the ranks are spread; `# pattern: main` asks for that pattern only.
    `name` is in kebab-case.
    """

    code: str
    name: str
    severity: Severity
    invalid: tuple[str, ...]
    valid: tuple[str, ...]
