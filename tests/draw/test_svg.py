"""The writer of SVG: what it escapes, rounds and cuts."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from commlang.draw.svg import clean, document, element, fitted, label, mark, number, text


def test_what_xml_reads_as_its_own_is_escaped() -> None:
    assert clean("""<a b="c" d='e'> & ]]>""") == (
        "&lt;a b=&quot;c&quot; d=&#x27;e&#x27;&gt; &amp; ]]&gt;"
    )


def test_what_xml_forbids_is_replaced() -> None:
    words = "".join(map(chr, range(32))) + "\ud800\ufffe\uffff\x7f\U0001f600é"
    found = ElementTree.fromstring(f"<a>{clean(words)}</a>").text
    assert found is not None
    assert found.replace("�", "") == "\t\n\n\x7f\U0001f600é"


@pytest.mark.parametrize(
    ("value", "told"), [(1.0, "1"), (0.04, "0"), (-0.01, "0"), (12.35, "12.3"), (1e4, "10000")]
)
def test_coordinates_have_a_decimal_at_most(value: float, told: str) -> None:
    assert number(value) == told


def test_attributes_are_escaped_and_none_is_left_out() -> None:
    assert element("g", class_='a"b', stroke_width=2, fill=None) == (
        '<g class="a&quot;b" stroke-width="2"/>'
    )


@pytest.mark.parametrize(
    ("words", "width", "told"),
    [("send", 40, "send"), ("send → 1", 40, "send …"), ("send", 20, ""), ("", 0, "")],
)
def test_text_is_cut_to_a_width(words: str, width: float, told: str) -> None:
    assert fitted(words, width) == told


def test_a_label_takes_its_short_form_where_the_long_one_does_not_fit() -> None:
    assert label(0, 0, "send → 1", 20, short="→1") == (
        '<text x="0" y="0" data-t="send → 1" data-s="→1" data-w="20">→1</text>'
    )
    assert ">send → 1<" in label(0, 0, "send → 1", 60, short="→1")


def test_a_document_stands_alone() -> None:
    picture = document(10, 20.5, [text(1, 2, "<x>"), "", mark("tip")], title="a & b")
    root = ElementTree.fromstring(picture)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert (root.get("width"), root.get("height"), root.get("viewBox")) == (
        "10", "20.5", "0 0 10 20.5",
    )  # fmt: skip
    space = "{http://www.w3.org/2000/svg}"
    assert [node.tag.removeprefix(space) for node in root] == ["title", "style", "text", "g"]
    assert root[0].text == "a & b"
    assert "prefers-color-scheme:dark" in (root[1].text or "")
