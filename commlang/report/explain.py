"""What `commlang explain` prints: the headline, its evidence, and what was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commlang.version import __version__

if TYPE_CHECKING:
    from commlang.explain import Explanation
    from commlang.explain.findings import Finding

VERSION = 1
"""Of the JSON form; it grows when a field changes its meaning or goes."""


def render(found: Explanation) -> str:
    """Findings with their evidence, notes and what was read; ends without a newline."""
    lines: list[str] = []
    for number, finding in enumerate(found.findings):
        lines += [finding.headline if not number else f"also: {finding.headline}"]
        lines += [f"  {line}" for line in finding.evidence]
    if not found.findings:
        lines.append("nothing is wrong in the dumps: all calls are alike on their ranks and over")
    lines += [f"note: {note}" for note in found.notes]
    return "\n".join([*lines, _read(found)])


def _read(found: Explanation) -> str:
    backends = " and ".join(found.backends)
    dumps = _count(len(found.ranks), "dump")
    world = _count(found.world, "rank")
    operations = _count(found.operations, "operation")
    groups = _count(found.groups, "group")
    return f"read {dumps} of {world}: {operations} of {backends} on {groups}"


def explain_json(found: Explanation) -> dict[str, Any]:
    """The same as JSON data.

    `findings` begin with the one that holds up most ranks; each has `kind`, `headline`, `ranks`
    (where it comes from), `waiting` (whom it holds up) and `evidence`. `ok` says that there is
    none.
    """
    return {
        "version": VERSION,
        "commlang": __version__,
        "ok": not found.findings,
        "world": found.world,
        "ranks": list(found.ranks),
        "backends": list(found.backends),
        "operations": found.operations,
        "groups": found.groups,
        "findings": [_finding_json(finding) for finding in found.findings],
        "notes": list(found.notes),
    }


def _finding_json(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "headline": finding.headline,
        "ranks": list(finding.ranks),
        "waiting": list(finding.waiting),
        "evidence": list(finding.evidence),
    }


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
