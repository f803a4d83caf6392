"""The pages of all rules, for `commlang rule` and the documentation; checking needs none of it."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from commlang import checks
from commlang.checks.rule import Rule
from commlang.records import record

GROUPS = {
    "CL0": "Text",
    "CL1": "Names, types and values",
    "CL2": "Communication",
    "CL23": "Data",
    "CL24": "Contracts",
    "CL25": "Transports",
    "CL26": "Backend support",
    "CL4": "Speed",
    "CL5": "Hygiene",
}
"""What the beginnings of codes mean; the longest that fits a code counts."""


@record
class Page:
    """A rule with its page: a title of one line and a text of paragraphs and lists."""

    rule: Rule
    title: str
    text: str

    @property
    def group(self) -> str:
        """The group that the rule belongs to."""
        return GROUPS[max((p for p in GROUPS if self.rule.code.startswith(p)), key=len)]


@cache
def pages() -> dict[str, Page]:
    """The page of each rule by its code, in order of the codes."""
    found: dict[str, Page] = {}
    for info in pkgutil.walk_packages(checks.__path__, f"{checks.__name__}."):
        module = import_module(info.name)
        rule = getattr(module, "RULE", None)
        if isinstance(rule, Rule):
            title, _, text = (module.__doc__ or "").strip().partition("\n")
            title = title.removesuffix(".").removesuffix(f" ({rule.code})")
            found[rule.code] = Page(rule, title, text.strip())
    return dict(sorted(found.items()))


def by_group() -> dict[str, list[Page]]:
    """The pages of each group, in order of their codes."""
    groups: dict[str, list[Page]] = {name: [] for name in GROUPS.values()}
    for page in pages().values():
        groups[page.group].append(page)
    return {name: found for name, found in groups.items() if found}
