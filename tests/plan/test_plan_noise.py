"""Plans from anywhere: whatever is wrong with one is a refusal, soon, and nothing in it is run."""

from __future__ import annotations

import contextlib
import copy
import json
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commlang.errors import CommlangError, UsageError
from commlang.plan import Plan, make_plan
from commlang.resolve.modules import load_module
from commlang.source import Source

TEXT = """\
pattern ring(x: float32[n], n = 8, op = sum, half = 1/2):
    mesh outer = world // 2, inner = 2
    temp inbox: like x
    parallel:
        send(x, dst=ranks.next)
        recv(inbox, src=ranks.prev)
    inbox -> x, op=op
    for i in range(4):
        all_reduce(x, group=inner)
    scale(x, half)
"""


def planned(text: str = TEXT) -> dict[str, Any]:
    module = load_module(Source(text, "<text>"))
    plan = make_plan(module.symbols["ring"], 4, {"n": 16, "op": "max"}, schedule="overlap")
    return json.loads(plan.to_json())


FIELDS = planned()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside of a JSON value."""
    inside = enumerate(value) if isinstance(value, list) else ()
    inside = value.items() if isinstance(value, dict) else inside
    deeper = [place for key, item in inside for place in places(item, (*path, key))]
    return [path, *deeper] if path else deeper


ODD = st.sampled_from(
    [
        *(None, True, False, 0, -1, 2, 1 << 31, 1 << 63, -(1 << 63), 10**400, 0.5, 1e308),
        *("", "1/0", "1/", "sum(", "premul_sum(1/0)", "\x00", "é" * 99, "../../etc/passwd", "ring"),
        *([], [[]], [0], [9], [-1, 0], {}, {"a": {}}, "__import__('os').system('true')"),
    ]
)
NOISE = st.one_of(
    ODD,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=5,
    ),
)


@st.composite
def mutations(draw: st.DrawFn) -> dict[str, Any]:
    """A plan in which some values are others, are gone or are new."""
    fields = copy.deepcopy(FIELDS)
    for _ in range(draw(st.integers(1, 2))):
        *way, last = draw(st.sampled_from(places(fields)))
        holder: Any = fields
        for key in way:
            holder = holder[key]
        match draw(st.sampled_from(["other", "gone", "new"])):
            case "gone":
                del holder[last]
            case "new" if isinstance(holder, dict):
                holder[draw(st.text(max_size=5))] = draw(NOISE)
            case _:
                holder[last] = draw(NOISE)
    return fields


@given(mutations())
def test_a_mutated_plan_is_refused_in_words(fields: dict[str, Any]) -> None:
    text = json.dumps(fields)
    if fields == FIELDS and text == json.dumps(FIELDS):
        return
    try:
        plan = Plan.from_json(text)
    except UsageError:
        return
    # A value may be another spelling of the same. Where the text lies is no part of what is
    # proven, and what lies there is compared by its digest.
    assert proven(json.loads(plan.to_json())) == proven(FIELDS)
    with contextlib.suppress(CommlangError):
        plan.actions(0)


def proven(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in ("path", "text")}


@settings(max_examples=100)
@given(mutations())
def test_a_forged_plan_is_refused_when_it_is_expanded(fields: dict[str, Any]) -> None:
    """One whose fingerprint was made anew, which shows no more that it was checked."""
    stated = fields.pop("fingerprint", None)
    fields["max_events"] = min(fields.get("max_events", 1), 10_000) if _small(fields) else 10_000
    try:
        made = Plan.model_validate_json(json.dumps(fields))
        forged = json.dumps({**fields, "fingerprint": made.fingerprint or stated})
    except ValueError:
        return
    with contextlib.suppress(CommlangError):  # anything else fails the test
        Plan.from_json(forged).actions(0)


def _small(fields: dict[str, Any]) -> bool:
    return isinstance(fields.get("max_events"), int)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_bytes_that_are_no_plan_are_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match="not a plan of version 1"):
        Plan.from_json(data)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "9" * 5000, "1e999", "NaN"])
def test_json_that_is_hostile_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a plan of version 1"):
        Plan.from_json(text)


EVENTS = list[str]()
"""What was imported, compiled, executed, opened or started while `WATCHED` is not empty."""
WATCHED = list[bool]()


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    kinds = ("import", "compile", "exec", "open", "os.", "subprocess.", "pickle.", "socket.")
    if WATCHED and event.startswith(kinds):
        EVENTS.append(f"{event} {arguments[:1]}")


def test_reading_a_plan_runs_nothing_and_opens_nothing() -> None:
    evil = "__import__('os').system('touch /tmp/owned')"
    fields = {**copy.deepcopy(FIELDS), "pattern": "os:system", "path": evil, "text": evil}
    fields.pop("fingerprint")
    forged = {**fields, "fingerprint": Plan.model_validate_json(json.dumps(fields)).fingerprint}
    text = json.dumps(forged)
    Plan.from_json(text)  # what is imported once by anybody is no matter
    sys.addaudithook(_note)
    WATCHED.append(True)
    try:
        Plan.from_json(text)
    finally:
        WATCHED.clear()
    assert EVENTS == []
    with pytest.raises(CommlangError):
        Plan.from_json(text).program(0)
