"""Groups that ranks know by different names: they did not make them in one order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.explain.findings import Finding
from commlang.explain.words import ranks_text

if TYPE_CHECKING:
    from commlang.explain.dump import GroupKey
    from commlang.explain.job import Job


def group_findings(job: Job) -> list[Finding]:
    """One finding if a name means overlapping but different groups on two ranks, else none.

    torch numbers the groups that a process makes, so that names differ where the order does. Dumps
    list a group when it was first used; of one that is not listed nothing follows.
    """
    named: dict[str, dict[GroupKey, list[int]]] = {}
    for rank, dump in job.dumps.items():
        for key in dump.groups:
            if key.ranks is not None:
                named.setdefault(key.name, {}).setdefault(key, []).append(rank)
    for name, keys in named.items():
        clash = _clash(list(keys))
        if clash is None:
            continue
        told = [f"on {ranks_text(keys[key])} it is {ranks_text(key.ranks or ())}" for key in clash]
        evidence = (
            *told,
            "torch numbers groups as a process makes them: every rank has to make all groups, in "
            "one order",
        )
        ranks = tuple(sorted({rank for key in clash for rank in keys[key]}))
        headline = f"group {name} is not one group: ranks made their groups in different orders"
        return [Finding("groups", headline, ranks, (), evidence)]
    return []


def _clash(keys: list[GroupKey]) -> tuple[GroupKey, GroupKey] | None:
    """Two groups of one name that share a rank; those that were split off share none."""
    for at, one in enumerate(keys):
        for other in keys[at + 1 :]:
            if set(one.ranks or ()) & set(other.ranks or ()):
                return one, other
    return None
