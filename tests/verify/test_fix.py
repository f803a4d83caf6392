"""`--fix`: what is mended, and that nothing is written that is not better."""

from __future__ import annotations

import pytest

from commlang import verify
from commlang.checks.edits import replace_statement
from commlang.diagnostics import Diagnostic, Edit, Fix, Label
from commlang.source import Source, Span
from commlang.syntax.formatter import format_source
from commlang.verify import Options, Outcome, fix
from commlang.verify.fix import mend

RING = """\
pattern main(x: float32[8], y: float32[8]):
    # around
    send(x, dst=ranks.next)  # out

    # and
    recv(
        y,  # whole
        src=ranks.prev,
    )
"""


def test_an_exchange_is_put_into_a_block_with_its_comments() -> None:
    mended = mend(Source(RING, "a.cl"))
    assert [found.code for found in mended.findings] == ["CL201"]
    assert (
        mended.text
        == """\
pattern main(x: float32[8], y: float32[8]):
    # around
    parallel:
        send(x, dst=ranks.next)  # out

        # and
        recv(
            y,  # whole
            src=ranks.prev,
        )
"""
    )
    assert format_source(Source(mended.text)) == mended.text
    assert mend(Source(mended.text, "a.cl")).findings == ()


def test_one_buffer_for_both_ends_gets_an_inbox() -> None:
    text = """\
pattern main(x: float32[8]):
    if world > 1:
        recv(x, src=ranks.prev)
        send(x, dst=ranks.next)
"""
    assert (
        mend(Source(text, "a.cl")).text
        == """\
pattern main(x: float32[8]):
    if world > 1:
        temp inbox: like x
        parallel:
            recv(inbox, src=ranks.prev)
            send(x, dst=ranks.next)
        inbox -> x
"""
    )


@pytest.mark.parametrize(
    "body",
    [
        # An inbox is there already.
        "temp inbox: like x\n    x -> inbox\n    send(x, dst=ranks.next)\n"
        "    recv(x, src=ranks.prev)\n    inbox -> x\n",
        # Something stands between, on which the recv may depend.
        "send(x, dst=ranks.next)\n    scale(x, 2)\n    recv(x, src=ranks.prev)\n",
        # The two stand in different blocks.
        "send(x, dst=ranks.next)\n    if world > 1:\n        recv(x, src=ranks.prev)\n",
    ],
)
def test_what_is_not_mechanical_is_left_alone(body: str) -> None:
    text = f"pattern main(x: float32[8]):\n    {body}"
    mended = mend(Source(text, "a.cl"))
    assert (mended.text, mended.findings) == (text, ())


def test_several_findings_are_mended_one_after_the_other() -> None:
    text = RING + "\n" + RING.replace("main", "again").replace("float32[8]", "float16[8]")
    mended = mend(Source(text, "a.cl"))
    assert len(mended.findings) == 2
    assert mended.text.count("    parallel:\n") == 2


def test_tabs_stay_tabs() -> None:
    text = (
        "pattern main(x: float32[8], y: float32[8]):\n\tsend(x, dst=ranks.next)\n\trecv(y, src=0)\n"
    )
    text = text.replace("src=0", "src=ranks.prev")
    assert "\tparallel:\n\t\tsend(x, dst=ranks.next)\n\t\trecv(" in mend(Source(text, "a.cl")).text


def test_files_that_are_imported_are_left_alone(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("files")
    (folder / "ring.cl").write_text(RING.replace("main", "ring"))
    text = "from ring import ring\n\npattern main(x: float32[8], y: float32[8]):\n    ring(x, y)\n"
    assert mend(Source(text, str(folder / "a.cl"))).findings == ()


PLAIN = "pattern main(x: float32[8]):\n    all_reduce(x)  # all\n    scale(x, 2)\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("all_reduce(x)", "all_reduce("),  # does not parse
        ("  # all", ""),  # loses a comment
        ("all_reduce(x)", "all_reduce(y)"),  # a finding that was not there
        ("scale(x, 2)", "scale(x, 3)"),  # does not mend it
    ],
)
def test_a_fix_that_does_harm_is_refused(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lint(source: Source, pattern: str | None, options: Options) -> Outcome:
        outcome = verify.lint_source(source, pattern, options)
        start = source.text.find(old)
        if start >= 0 or new == "scale(x, 3)":
            span = Span(start, start + len(old)) if start >= 0 else Span(0, 0)
            edits = Fix(source, (Edit(span, new if start >= 0 else ""),))
            label = Label(source, Span(0, 7))
            outcome.add([Diagnostic("CL499", "odd", (label,), fix=edits)])
        return outcome

    monkeypatch.setattr(fix, "lint_source", lint)
    mended = mend(Source(PLAIN, "a.cl"))
    assert (mended.text, mended.findings) == (PLAIN, ())


def test_edits_are_applied_in_the_order_of_the_text() -> None:
    source = Source("abcdef")
    edits = (Edit(Span(4, 6), "XY"), Edit(Span(0, 1), ""), Edit(Span(2, 2), "-"))
    assert Fix(source, edits).apply() == "b-cdXY"
    assert replace_statement  # what rules build their fixes with
