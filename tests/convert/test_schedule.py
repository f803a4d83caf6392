"""Reading a schedule: what torch writes, and each mistake with its place and what to write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlang.convert import parse_schedule, pattern_from_schedule
from commlang.convert import schedule as module
from commlang.convert.actions import Act, Action, parse_action
from commlang.errors import UsageError

GOOD = "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n"


def refusal(text: str, stages: str | None = None, **options: bool) -> str:
    with pytest.raises(UsageError) as caught:
        pattern_from_schedule(parse_schedule(text.encode(), "s.csv"), stages, **options)
    return str(caught.value)


def test_what_an_action_is() -> None:
    assert parse_action("12RECV_F3") == Action(Act.RECV_F, 12, 3)
    assert parse_action("0REDUCE_GRAD") == Action(Act.REDUCE_GRAD, 0)
    both = parse_action("(0F4;3B1)OVERLAP_F_B")
    assert both.atoms() == (Action(Act.FORWARD, 0, 4), Action(Act.BACKWARD, 3, 1))
    assert str(both) == "(0F4;3B1)OVERLAP_F_B"


def test_pauses_quotes_brackets_and_line_ends_are_passed_over() -> None:
    plain = parse_schedule(GOOD.encode(), "s.csv")
    other = '[0F0, 0SEND_F0,,0RECV_B0, "0B0"]\r\n,,1RECV_F0,1F0,1B0,1SEND_B0\r\n\r\n'
    found = parse_schedule(b"\xef\xbb\xbf" + other.encode(), "s.csv")
    assert [row.actions for row in found.rows] == [row.actions for row in plain.rows]
    assert (found.stages, found.batches) == (2, 1)
    assert [found.where(0, index) for index in range(4)] == [
        "s.csv:1:2",
        "s.csv:1:7",
        "s.csv:1:17",
        "s.csv:1:28",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "s.csv is empty; a schedule has a row of actions for each rank"),
        ("0F0\n\n1F0\n", "s.csv:2:1: this rank does nothing; each line is the row of one rank"),
        ("0F0, 0FF1\n", "s.csv:1:6: `0FF1`: there is no action `FF`; did you mean `F`?"),
        (
            "0F0,0SENDF0\n",
            "s.csv:1:5: `0SENDF0`: there is no action `SENDF`; did you mean `SEND_F`?",
        ),
        ("0F0,F0\n", "s.csv:1:5: `F0` is no action; one looks like 2F0, 1SEND_F3, 0UNSHARD"),
        ("0F\n", "s.csv:1:1: `0F`: F wants a micro-batch, as in 0F0"),
        ("0F0,0RESHARD1\n", "s.csv:1:5: `0RESHARD1`: RESHARD has no micro-batch; write 0RESHARD"),
        ("0F1234567\n", "s.csv:1:1: `0F1234567`: the number is too large"),
        ("(0F0;0B0)F\n", "s.csv:1:1: `(0F0;0B0)F`: write two actions as (2F4;5B1)OVERLAP_F_B"),
        (
            "(0F0;0SEND_F0)OVERLAP_F_B\n",
            "s.csv:1:1: `(0F0;0SEND_F0)OVERLAP_F_B`: 0SEND_F0 cannot stand in an OVERLAP_F_B",
        ),
        ("0UNSHARD\n", "s.csv: no rank computes anything; a schedule has actions such as 0F0"),
    ],
)
def test_what_is_no_schedule(text: str, message: str) -> None:
    assert refusal(text).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0F0,0F0\n", "s.csv:1:5: `0F0` is here twice"),
        ("0F0,0W0\n", "s.csv:1:5: `0W0` comes before 0I0, which it needs"),
        ("0F0,1F0,0B0,1B0\n", "s.csv:1:9: `0B0` comes before 1B0, which it needs"),
        (
            "0SEND_F0,0F0\n1RECV_F0,1F0\n",
            "s.csv:1:1: `0SEND_F0` comes before 0F0, which it needs",
        ),
        (
            "0F0,0SEND_F0\n1F0,1RECV_F0\n",
            "s.csv:2:1: `1F0` comes before 1RECV_F0, which it needs",
        ),
        (
            "0F0,0RECV_F0,0SEND_F0\n1RECV_F0,1F0\n",
            "s.csv:1:5: `0RECV_F0`: there is no stage before stage 0",
        ),
        (
            "0F0,0SEND_F0,1F0,1SEND_F0\n2RECV_F0,2F0\n",
            "s.csv:1:5: `0SEND_F0`: stages 0 and 1 are both on rank 0, so that nothing is sent",
        ),
        (
            "0F0,0SEND_F0,0F1\n1RECV_F0,1F0\n",
            "s.csv:2:1: `1F1` is missing in the row of rank 1; there are 2 micro-batches",
        ),
        (
            "0F0,1F0,1I0,0B0\n",
            "s.csv:1:1: `1W0` is missing in the row of rank 0; there are 1 micro-batches",
        ),
        ("0F0,2F0\n", "s.csv: stage 1 does nothing, though there is a stage 2"),
        (
            "0F0,0SEND_F0\n1RECV_F0,1F0,0F1\n",
            "s.csv:2:14: `0F1` is in the row of rank 1, but stage 0 is on rank 0 (line 1)",
        ),
        ("0F0\n1F0\n", "s.csv has no sends and receives; --lower adds them"),
    ],
)
def test_what_makes_no_sense_on_a_rank(text: str, message: str) -> None:
    assert refusal(text) == message


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        (
            "0=1,1=0",
            "s.csv:1:1: `0F0` is in the row of rank 0, but --stages puts stage 0 on rank 1",
        ),
        ("0=0", "--stages does not say which rank has stage 1"),
        ("0=0,0=1", "--stages: stage 0 is on rank 0 and rank 1"),
        ("0=0,1=1,2=0", "--stages: 2=0, but the file has 2 stages and 2 ranks"),
        ("ring", "--stages ring: write `loop`, `v` or STAGE=RANK for each stage, as in 0=0,1=1,"),
    ],
)
def test_what_is_said_of_stages_must_be_so(stages: str, message: str) -> None:
    assert refusal(GOOD, stages).startswith(message)


def test_lowering_needs_an_order_that_can_be_run_and_no_messages() -> None:
    said = "s.csv has sends and receives already; leave out --lower"
    assert refusal(GOOD, lower=True) == said
    crossed = "3F0,0F0\n1F0,2F0\n"
    assert refusal(crossed, lower=True) == (
        "s.csv:1:1: `3F0` waits for what no rank gets to compute; the ranks wait for each other"
    )


def test_input_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ACTIONS", 9)
    parse_schedule(GOOD.encode(), "s.csv")
    assert refusal(GOOD + "0F1,0F2\n") == "s.csv has more than 9 actions; not a schedule"
    monkeypatch.setattr(module, "MAX_BYTES", 9)
    assert refusal(GOOD) == "s.csv has more than 9 actions; not a schedule"


TOKENS = st.sampled_from(["0F0", "1F0", "0SEND_F0", "1RECV_F0", "0B0", "(0F0;0B0)OVERLAP_F_B", ""])
ROWS = st.lists(st.lists(TOKENS | st.text(max_size=6), max_size=6).map(",".join), max_size=4)


@given(st.binary(max_size=60) | ROWS.map("\n".join).map(str.encode))
def test_no_input_ends_in_a_traceback(data: bytes) -> None:
    try:
        text = pattern_from_schedule(parse_schedule(data, "s.csv")).text
    except UsageError as error:
        text = f"{error}\n"
        starts = "s.csv"
    else:
        starts = "extern"
    assert text.startswith(starts)
    assert text.endswith("\n")
