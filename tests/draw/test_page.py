"""Pages in a real browser: the script runs, and hover, search and zoom do what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlang.draw import Subject, draw

from .webdriver import Browser, browsing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from commlang.program import Program

pytestmark = pytest.mark.slow

TEXT = """\
pattern main(x: float32[n], n = 8):
    compute(1ms, label="</script><script>document.title = 'taken over'</script>")
    if rank == 0:
        send(x, dst=1)
    if rank == 1:
        recv(x, src=0)
    all_reduce(x)
"""
BAR = ".mark > rect.m"
TIP = "const tip = document.getElementById('tip'); return tip.hidden ? null : tip.innerText"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("light")) as found:
        yield found


@pytest.fixture
def page(tmp_path: Path, program: Callable[..., Program]) -> Path:
    path = tmp_path / "page.html"
    path.write_text(draw(Subject(program(TEXT, 3)), form="html"), encoding="utf-8")
    return path


def test_the_script_has_run_and_nothing_else(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert int(browser.run("return document.body.dataset.ready")) == 10
    assert browser.run("return document.title") == "main (n = 8) on 3 ranks"
    assert browser.run("return document.scripts.length") == 1
    assert browser.complaints() == []


def test_what_is_under_the_pointer_is_told(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.run(TIP) is None
    browser.hover(BAR)
    assert browser.run(TIP).splitlines() == [
        "rank 0",
        "send(x, dst=1)",
        "to rank 1",
        "32 B",
        "main.cl:4:9",
        "step 1 to step 2",
    ]
    browser.hover("header")
    assert browser.run(TIP) is None
    browser.click(BAR)
    browser.hover("header")
    assert browser.run(TIP).startswith("rank 0\nsend")


def test_search_shows_what_is_found(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.type("#search", "ALL_reduce")
    count = "return document.getElementById('count').textContent"
    hits = "return document.querySelectorAll('.mark.hit').length"
    assert browser.run(hits) == 4
    assert browser.run(count) == "4 found"
    faint = "return getComputedStyle(document.querySelector('.mark:not(.hit)')).opacity"
    assert float(browser.run(faint)) < 0.5
    browser.type("#search", "\ue007")  # Enter
    assert browser.run(count) == "1 of 4"
    browser.type("#search", "\ue00c")  # Escape
    assert browser.run(hits) == 0


def test_zooming_in_makes_room_for_more_of_a_name(browser: Browser, page: Path) -> None:
    browser.open(page)
    name = "return document.querySelector('text[data-t^=\"</script>\"]')"
    first = browser.run(f"{name}.textContent")
    size = f"{name}.getBoundingClientRect().height"
    height = browser.run(size)
    for _ in range(4):
        browser.click("#in")
    assert float(browser.run("return document.body.dataset.zoom")) == pytest.approx(5.06)
    assert len(browser.run(f"{name}.textContent")) > len(first)
    assert browser.run(size) == pytest.approx(height, rel=0.25)
    browser.click("#all")
    assert browser.run("return stage.scrollWidth <= stage.clientWidth") is True
    browser.click("#one")
    assert browser.run(f"{name}.textContent") == first


def test_a_page_is_dark_where_the_reader_is(tmp_path: Path, page: Path) -> None:
    paper = "return getComputedStyle(document.querySelector('#stage svg')).backgroundColor"
    with browsing(tmp_path / "dark", dark=True) as dark:
        dark.open(page)
        assert dark.run(paper) == "rgb(22, 24, 28)"
        assert dark.run("return getComputedStyle(document.body).backgroundColor") == (
            "rgb(22, 24, 28)"
        )
