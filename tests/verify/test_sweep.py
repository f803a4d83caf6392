"""Many worlds at once: what is decided, how it is shared out, and what is said of it."""

from __future__ import annotations

import os
import sys
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from commlang.errors import CommlangError
from commlang.resolve.modules import Definition, load_module
from commlang.source import Source
from commlang.verify import Choice, Options, Outcome, lint_source, sweep
from commlang.verify.affine import Matching

if TYPE_CHECKING:
    from commlang.diagnostics import Diagnostic

PARTNERS = """\
pattern main(x: float32[n], n = 8):
    let partner = rank + 1 - 2 * (rank % 2)
    if rank < partner:
        send(x, dst=partner)
    else:
        recv(x, src=partner)
"""
UNMET = """\
pattern main(x: float32[n], y: float32[n], n = 8):
    require world > 3, "too few"
    if world % 3 == 0:
        if rank == 0:
            recv(x, src=1)
    all_reduce(y)
    if rank == 0:
        send(x, dst=1)
    elif rank == 1 and world < 8:
        recv(x, src=0)
"""
WORLDS = tuple(range(2, 17))


def lint(text: str, worlds: tuple[int, ...] = WORLDS, **given: Any) -> Outcome:
    options = Options(Choice(worlds=worlds), **given)
    return lint_source(Source(dedent(text), "a.cl"), options=options)


def told(outcome: Outcome) -> list[tuple[str, str]]:
    """Code and worlds of each finding."""
    return [(f.code, f.notes[-1]) for f in outcome.findings]


def test_a_finding_is_told_once_with_its_smallest_world() -> None:
    outcome = lint(PARTNERS)
    (found,) = outcome.findings
    assert (found.code, found.message) == ("CL116", "`dst` is rank 3, but the ranks are 0 to 2")
    assert found.notes[-2:] == (
        "with world = 3, n = 8",
        "in odd worlds from 3: 7 of the 15 checked (2..16)",
    )
    assert found.extra["world"] == 3
    assert found.extra["worlds"] == [3, 5, 7, 9, 11, 13, 15]
    assert found.extra["checked"] == list(WORLDS)
    assert outcome.notes == [
        "a.cl:1:9: `main` was checked in worlds 2..16; nothing is said of other worlds"
    ]
    assert (outcome.patterns, outcome.failed) == (1, True)


def test_worlds_that_the_pattern_refuses_are_left_out() -> None:
    outcome = lint(UNMET)
    assert told(outcome) == [
        ("CL203", "in multiples of 3 from 6: 4 of the 13 checked (4..16)"),
        ("CL202", "in every world from 8: 9 of the 13 checked (4..16)"),
    ]
    (result,) = outcome.sweeps
    assert result.checked == WORLDS[2:]
    assert [(r.worlds, r.reason) for r in result.refused] == [((2, 3), "required: too few")]
    assert outcome.notes == [
        "a.cl:1:9: `main` was checked in worlds 4..16; not applicable: worlds 2, 3 "
        "(required: too few); nothing is said of other worlds"
    ]


def test_a_pattern_that_takes_none_of_the_worlds_counts_as_not_checked() -> None:
    outcome = lint(UNMET, (2, 3))
    assert (outcome.findings, outcome.patterns) == ([], 0)
    assert (
        "`main` was checked in no world; not applicable: every world checked" not in outcome.notes
    )
    assert outcome.notes[0].startswith("a.cl:1:9: `main` was checked in no world; not applicable: ")


def test_what_is_proven_of_all_worlds_is_said() -> None:
    text = """\
    pattern main(x: float32[8], y: float32[8]):
        parallel:
            send(x, dst=ranks.next)
            recv(y, src=ranks.prev)
    """
    outcome = lint(text)
    assert outcome.findings == []
    assert outcome.sweeps[0].matching is Matching.PROVEN
    assert outcome.notes == [
        "a.cl:1:9: `main` was checked in worlds 2..16; point-to-point matching is proven for every "
        "world that it accepts"
    ]


def test_presets_are_checked_beside_the_worlds() -> None:
    text = """\
    pattern main(x: float32[n], n = 8):
        preset five: world = 5, n = 16
        if n == 16:
            send(x, dst=ranks.next)
        all_reduce(x)
    """
    outcome = lint(text)
    (found,) = outcome.findings
    assert (found.code, found.extra["world"], found.extra["preset"]) == ("CL202", 5, "five")
    assert "worlds" not in found.extra
    source = Source(dedent(text), "a.cl")
    chosen = lint_source(source, options=Options(Choice(preset="five", worlds=(3, 4))))
    assert told(chosen) == [("CL202", "in every world checked: 2 of the 2 checked (3, 4)")]
    assert "with world = 3, n = 16 (preset `five`)" in chosen.findings[0].notes
    other = lint_source(source, options=Options(Choice(values={"n": 4}, worlds=(3, 4))))
    assert other.findings == []


def test_a_parameter_without_a_value_leaves_a_pattern_unchecked() -> None:
    outcome = lint("pattern main(x: float32[n], n: int):\n    all_reduce(x)\n")
    assert (outcome.findings, outcome.sweeps, outcome.patterns) == ([], [], 0)
    assert outcome.notes == [
        "a.cl:1:9: `main` was checked only statically: `n` has no value; give --set n=…"
    ]


def test_a_world_that_is_too_large_is_undecided() -> None:
    text = "pattern main(x: float32[8]):\n    for i in range(world):\n        all_reduce(x)\n"
    outcome = lint(text, (2, 3, 4, 5, 6, 7, 8), max_events=30)
    (found,) = outcome.findings
    assert found.code == "CL120"
    assert found.extra["worlds"] == [6, 7, 8]
    (result,) = outcome.sweeps
    assert (result.checked, result.undecided) == ((2, 3, 4, 5), (6, 7, 8))
    assert "checked in worlds 2..5; too large to decide: every world from 6;" in outcome.notes[0]


# ------------------------------------------------------------------- processes

RING = "pattern main(x: float32[8]):\n    send(x, dst=ranks.next)\n    recv(x, src=ranks.prev)\n"


@pytest.fixture
def forking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three processes, whatever else this one does: it has long been told that it may."""
    monkeypatch.setattr(sweep, "_may_fork", lambda: True)
    monkeypatch.setattr(sweep, "_cpus", lambda: 3)


@pytest.fixture
def pattern() -> Definition:
    return load_module(Source(RING, "a.cl")).symbols["main"]


needs_fork = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux")


@needs_fork
@pytest.mark.usefixtures("forking")
@pytest.mark.parametrize("text", [PARTNERS, UNMET, RING])
def test_processes_come_to_the_same(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = lint(text)
    monkeypatch.setattr(sweep, "_may_fork", lambda: False)
    alone = lint(text)
    assert [f.render() for f in shared.findings] == [f.render() for f in alone.findings]
    assert [f.extra for f in shared.findings] == [f.extra for f in alone.findings]
    assert shared.notes == alone.notes


@needs_fork
@pytest.mark.usefixtures("forking")
def test_events_are_bounded_over_all_processes(pattern: Definition) -> None:
    """A process gets its share; what needs more is decided in this one, with all there is."""
    asked: list[tuple[int, int]] = []
    here = os.getpid()

    def check(world: int, max_events: int) -> list[Diagnostic]:
        if os.getpid() == here:
            asked.append((world, max_events))
        else:
            assert max_events == 100
        if world * 20 > max_events:
            return list(lint(RING, (2,), max_events=1).findings)
        return []

    result, found = sweep.sweep(pattern, WORLDS, check, 300)
    assert sorted(asked) == [(w, 300) for w in range(6, 16)] + [(16, 300), (16, 300)]
    assert (result.checked, result.undecided) == (WORLDS[:-1], (16,))
    assert [f.code for f in found] == ["CL120"]


@needs_fork
@pytest.mark.usefixtures("forking")
def test_a_process_that_dies_is_told_and_none_is_left(pattern: Definition) -> None:
    import multiprocessing

    def check(world: int, max_events: int) -> list[Diagnostic]:
        if world == 9:
            os._exit(1)
        return []

    with pytest.raises(CommlangError, match=r"^a process that checked worlds died"):
        sweep.sweep(pattern, WORLDS, check, 300)
    assert multiprocessing.active_children() == []


@needs_fork
@pytest.mark.usefixtures("forking")
def test_an_interrupt_ends_all_processes_at_once(pattern: Definition) -> None:
    import multiprocessing
    import time

    def check(world: int, max_events: int) -> list[Diagnostic]:
        if world < 16:
            time.sleep(300)
        return []

    def interrupt(done: int, worlds: int) -> None:
        assert (done, worlds) == (1, 15)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep.sweep(pattern, WORLDS, check, 300, interrupt)
    assert multiprocessing.active_children() == []


def test_processes_are_forked_only_where_that_is_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep.sys, "platform", "linux")
    monkeypatch.setattr(sweep.threading, "active_count", lambda: 1)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert sweep._may_fork()
    monkeypatch.setattr(sweep.threading, "active_count", lambda: 2)
    assert not sweep._may_fork()
    monkeypatch.setattr(sweep.threading, "active_count", lambda: 1)
    monkeypatch.setitem(sys.modules, "torch", sweep)
    assert not sweep._may_fork()


def test_progress_counts_worlds(pattern: Definition) -> None:
    seen: list[tuple[int, int]] = []
    sweep.sweep(pattern, (2, 3, 4), lambda w, m: [], 300, lambda *at: seen.append(at))
    assert seen == [(1, 3), (2, 3), (3, 3)]
