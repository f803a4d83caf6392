"""Every rule: its page says what it must, and its examples are found, or clean, as they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commlang import checks
from commlang.checks import speed
from commlang.checks.pages import GROUPS, Page, pages
from commlang.report.rules import rules_document
from commlang.source import Source
from commlang.syntax.formatter import format_source
from tests.checks.examples import Example

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]
PAGES = list(pages().values())
WRONG = [(p.rule.code, text) for p in PAGES for text in p.rule.invalid]
RIGHT = [(p.rule.code, text) for p in PAGES for text in p.rule.valid]


@pytest.mark.parametrize(("code", "text"), WRONG, ids=lambda v: v if v[:2] == "CL" else "")
def test_each_marked_line_is_found_and_no_other(code: str, text: str) -> None:
    example = Example(text)
    assert example.marks
    assert {mark for _, mark in example.marks} == {code}
    assert example.found(code) == example.marks


@pytest.mark.parametrize(("code", "text"), RIGHT, ids=lambda v: v if v[:2] == "CL" else "")
def test_what_is_right_is_clean(code: str, text: str) -> None:
    example = Example(text)
    assert not example.marks
    assert example.found(code) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.rule.code)
def test_a_page_says_what_why_and_how_to_mend(page: Page) -> None:
    rule = page.rule
    assert re.fullmatch(r"CL\d{3}", rule.code)
    assert re.fullmatch(r"[a-z]+[0-9]*(-[a-z0-9]+)*", rule.name)
    assert 8 < len(page.title) <= 75
    assert page.title[0].isupper() or page.title[0] == "`"
    assert not page.title.endswith((".", ")"))
    paragraphs = re.split(r"\n\n", page.text)
    assert len(paragraphs) >= 2, "what and why; then how to mend it"
    assert len(page.text.split()) >= 40
    assert rule.invalid
    assert rule.valid
    assert all(len(line) <= 100 for text in rule.invalid for line in text.splitlines())


def test_names_are_of_one_rule() -> None:
    names = [page.rule.name for page in PAGES]
    assert len(set(names)) == len(names)


def test_every_code_that_is_told_has_a_page_and_every_page_is_told() -> None:
    told: set[str] = set()
    for path in (ROOT / "commlang").rglob("*.py"):
        if path.parent.name != "language":
            told |= set(re.findall(r"CL\d{3}", path.read_text("utf-8")))
    assert told == set(pages())
    assert all(any(code.startswith(prefix) for prefix in GROUPS) for code in told)


def test_every_rule_with_a_check_is_registered() -> None:
    registered = {module.RULE.code for module in _registered()}
    wanted = {p.rule.code for p in PAGES if p.rule.code[:3] in ("CL2", "CL4")}
    assert registered == wanted


def _registered() -> list[ModuleType]:
    modules = [*vars(checks).values(), *speed.RULES]
    return [module for module in modules if hasattr(module, "RULE")]


def test_the_document_of_the_rules_is_current() -> None:
    current = (ROOT / "docs" / "rules.md").read_text("utf-8")
    assert current == rules_document(), "run `python -m commlang.report.rules > docs/rules.md`"


@pytest.mark.parametrize(("code", "text"), WRONG + RIGHT, ids=lambda v: v if v[:2] == "CL" else "")
def test_examples_are_formatted(code: str, text: str) -> None:
    if code not in ("CL001", "CL002"):
        assert format_source(Source(text, "example.cl")) == text
