"""What is no pattern file, whatever it is, is refused in words, and soon."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlang.errors import CommlangError, PatternError, UsageError
from commlang.source import MAX_BYTES, Source
from commlang.syntax.formatter import format_source
from commlang.syntax.parser import parse
from commlang.syntax.scan import MAX_DEPTH
from tests.syntax.dump import body
from tests.syntax.generate import COMMENTS, NUMBERS, STRINGS, Writer

TOKENS = [
    *("pattern", "extern", "from", "import", "let", "temp", "for", "in", "if", "else", "elif"),
    *("parallel", "sequence", "async", "wait", "pass", "require", "ensure", "like", "not", "and"),
    *("x", "p", "(", ")", "[", "]", ":", ",", ".", "=", "->", "@", "**", "-", "==", "\n", "\n    "),
    *("\n        ", "\n\t", '"', '"""', "λ", "\\", *NUMBERS, *STRINGS, *COMMENTS),
]


def _accept_or_refuse(text: str) -> None:
    """Parse and format; anything but success and a located finding fails the test."""
    source = Source(text, "file.cl")
    try:
        formatted = format_source(source)
    except PatternError as error:
        assert all(d.where().startswith("file.cl:") for d in error.diagnostics)  # noqa: PT017
        assert str(error).startswith("error[CL")  # noqa: PT017
    else:
        assert format_source(Source(formatted)) == formatted


@given(st.text())
def test_any_text(text: str) -> None:
    _accept_or_refuse(text)


@given(st.lists(st.sampled_from(TOKENS), max_size=60), st.sampled_from(["", " "]))
def test_any_tokens(tokens: list[str], between: str) -> None:
    _accept_or_refuse(between.join(tokens))


@given(st.lists(st.sampled_from(TOKENS), max_size=20))
def test_any_tokens_in_a_pattern(tokens: list[str]) -> None:
    _accept_or_refuse(body(" ".join(tokens)))


@given(
    st.integers(0, 10**9), st.integers(0, 10**9), st.sampled_from(["", "(", '"', "\n", "λ", ":"])
)
def test_a_file_with_one_mistake(seed: int, place: int, mistake: str) -> None:
    text = Writer(Random(seed)).module()
    cut = place % (len(text) + 1)
    _accept_or_refuse(text[:cut] + mistake + text[cut + (place % 3) :])


@given(st.binary())
def test_any_bytes(data: bytes) -> None:
    try:
        source = Source.decode(data, "file.cl")
    except UsageError as error:
        assert str(error).startswith("file.cl:")  # noqa: PT017
    else:
        _accept_or_refuse(source.text)


def test_a_file_of_the_largest_size_is_read_and_one_byte_more_is_not() -> None:
    assert parse(Source.decode(b"#" * MAX_BYTES, "file.cl")).items == ()
    with pytest.raises(UsageError, match=r"^file\.cl is larger than 4 MiB, more than is read$"):
        Source.decode(b"#" * (MAX_BYTES + 1), "file.cl")


DEEP = {
    "brackets": ("(" * 101 + "a" + ")" * 101, "brackets are nested more than 100 deep"),
    "open brackets": ("(" * 100_000, "brackets are nested more than 100 deep"),
    "indices": ("a" + "[0]" * 101, "code is nested more than 100 deep"),
    "signs": ("-" * 10_000 + "a", "code is nested more than 100 deep"),
    "not": ("not " * 10_000 + "a", "code is nested more than 100 deep"),
    "powers": ("a ** " * 10_000 + "a", "code is nested more than 100 deep"),
    "sums": ("a + " * 10_000 + "a", "code is nested more than 100 deep"),
    "conditionals": ("a if b else " * 10_000 + "a", "code is nested more than 100 deep"),
}


@pytest.mark.parametrize(("value", "message"), DEEP.values(), ids=DEEP)
def test_depth_is_bounded(value: str, message: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse(Source(body(f"let v = {value}"), "file.cl"))
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == ("CL002", message)
    assert diagnostic.where().startswith("file.cl:2:")


def test_blocks_are_bounded_too() -> None:
    text = body(*(" " * n + "parallel:" for n in range(200)), " " * 200 + "pass")
    with pytest.raises(PatternError) as caught:
        parse(Source(text, "file.cl"))
    assert caught.value.diagnostics[0].code == "CL002"


def test_what_a_person_may_write_is_within_the_bounds() -> None:
    deep = body("let v = " + "(" * (MAX_DEPTH // 2) + "a" + ")" * (MAX_DEPTH // 2))
    wide = body("let v = " + " and ".join(["f(a)"] * 5000))
    for text in (deep, wide, body("let v = [" + "1, " * 5000 + "]")):
        formatted = format_source(Source(text))
        assert format_source(Source(formatted)) == formatted


def test_a_refusal_is_no_traceback() -> None:
    assert issubclass(PatternError, CommlangError)
    assert PatternError(()).exit_code == 1
