"""`commlang compare`: which patterns, with which values, what is told and what is refused."""

from __future__ import annotations

import json
import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from .conftest import Result

    Cli = Callable[..., Result]

pytestmark = pytest.mark.usefixtures("files")


def told(result: Result) -> dict[str, dict[str, Any]]:
    assert result.code == 0, result.err
    return {one["label"]: one for one in json.loads(result.out)["patterns"]}


def rows(result: Result) -> list[str]:
    """The table's lines, with one space between columns."""
    return [" ".join(line.split()) for line in result.out.splitlines()]


def same(value: Any) -> dict[str, float]:
    return {"min": value, "mean": value, "max": value}


def test_bytes_messages_memory_and_proofs_stand_side_by_side(cli: Cli) -> None:
    found = told(cli("compare", "whole.cl", "by_hand.cl", "--world", "4", "--format", "json"))
    whole, by_hand = found["whole"], found["by_hand"]
    assert whole["sent"] == same(2 * 3 / 4 * 4096)  # a ring's, by default
    assert by_hand["sent"] == same(4096)
    assert (whole["messages"], whole["collectives"]) == (same(0), same(1))
    assert (by_hand["messages"], by_hand["collectives"]) == (same(1), same(0))
    assert (whole["peak_memory"], by_hand["peak_memory"]) == (same(4096), same(8192))
    assert (whole["contract"], by_hand["contract"]) == ("proven", "undecided")
    assert set(whole["ends"]) == {"rendezvous", "nccl, lazy", "nccl, eager"}
    assert {*whole["ends"].values(), *by_hand["ends"].values()} == {"ends"}
    assert (whole["world"], whole["events"], by_hand["events"]) == (4, 4, 12)
    assert whole["parameters"] == {"n": "1Ki", "k": "1"}


def test_ranks_that_do_different_things_have_a_least_and_a_most(cli: Cli, folder: Path) -> None:
    text = "pattern fan(x: float32[n], n = 8):\n    if rank == 0:\n        for r in ranks[1:]:\n"
    text += "            send(x, dst=r)\n    else:\n        recv(x, src=0)\n"
    text += "    temp more: float32[8 * rank]\n    fill(more, 0)\n"
    (folder / "fan.cl").write_text(text, encoding="utf-8")
    (one,) = told(cli("compare", "fan.cl", "--world", "3", "--format", "json")).values()
    assert one["sent"] == {"min": 0, "mean": 64 / 3, "max": 64}
    assert one["messages"] == {"min": 0, "mean": 2 / 3, "max": 2}
    assert one["peak_memory"] == {"min": 32, "mean": 64, "max": 96}
    shown = rows(cli("compare", "fan.cl", "--world", "3"))
    assert "sent per rank 0 / 21 / 64 B" in shown
    assert "messages per rank 0 / 0.6667 / 2" in shown


def test_time_and_links_are_those_of_a_machine(cli: Cli) -> None:
    options = ("--topology", "dgx-h100", "--topology", "pcie-box", "--world", "2")
    found = told(cli("compare", "whole.cl", "by_hand.cl", *options, "--format", "json"))
    dgx, box = found["by_hand"]["on"]
    assert (dgx["machine"], box["machine"]) == ("dgx-h100", "pcie-box")
    assert dgx["links"] == {"nvlink": 2 * 4096}
    # LogGP of one message each way: o + L + (k - 1) / B + o, of the shipped file
    assert dgx["makespan"] == pytest.approx(3.3e-6 + 1.9e-6 + 4095 / 370.8e9 + 3.3e-6)
    assert dgx["exposed"] == same(pytest.approx(dgx["makespan"]))
    assert dgx["computing"] == same(0)
    assert box["makespan"] > dgx["makespan"]
    text = rows(cli("compare", "whole.cl", "by_hand.cl", *options))
    at = text.index("on dgx-h100")
    assert text[at + 1 : at + 3] == ["over nvlink 8 KiB 8 KiB", "part of 80 GB memory 0% 0%"]
    assert text[at + 5] == "exposed communication 8.51 µs 8.51 µs"
    assert "on pcie-box" in text
    assert text[-1] == "taken to need no time, since they have no `cost`: `add`"


def test_a_value_goes_to_all_that_have_it_or_to_one(cli: Cli) -> None:
    values = ("--set", "n=2Ki", "--set", "k=3", "--set", "by_hand.n=8", "--world", "2")
    found = told(cli("compare", "whole.cl", "by_hand.cl", *values, "--format", "json"))
    assert found["whole"]["parameters"] == {"n": "2Ki", "k": "3"}
    assert found["by_hand"]["parameters"] == {"n": "8"}


def test_a_pattern_may_stand_beside_itself_under_labels(cli: Cli) -> None:
    values = ("--set", "b.n=4Ki", "--world", "2", "--format", "json")
    found = told(cli("compare", "a=whole.cl", "b=whole.cl:whole", "whole.cl", "whole.cl", *values))
    assert list(found) == ["a", "b", "whole", "whole_2"]
    assert [one["parameters"]["n"] for one in found.values()] == ["1Ki", "4Ki", "1Ki", "1Ki"]


def test_a_preset_is_for_those_that_have_it(cli: Cli) -> None:
    found = told(cli("compare", "whole.cl", "by_hand.cl", "--preset", "large", "--format", "json"))
    assert (found["whole"]["world"], found["whole"]["parameters"]["n"]) == (2, "4Ki")
    assert (found["by_hand"]["world"], found["by_hand"]["parameters"]["n"]) == (4, "1Ki")


def test_values_that_all_have_are_told_once(cli: Cli) -> None:
    result = cli("compare", "a=whole.cl", "b=whole.cl", "by_hand.cl", "--set", "b.k=2")
    assert rows(result)[:3] == ["all: n = 1Ki", "a: whole k = 1", "b: whole k = 2"]


def test_the_table_for_a_page_is_markdown(cli: Cli) -> None:
    result = cli("compare", "whole.cl", "by_hand.cl", "--world", "4", "--format", "markdown")
    assert result.out.splitlines()[:5] == [
        "|   | whole | by_hand |",
        "| --- | ---: | ---: |",
        "| ranks | 4 | 4 |",
        "| events | 4 | 12 |",
        "| sent per rank | 6 KiB | 4 KiB |",
    ]


def test_a_pattern_with_errors_is_told_and_the_others_are_compared(cli: Cli) -> None:
    result = cli("compare", "stuck.cl", "whole.cl")
    assert result.code == 1
    assert result.err.startswith("error[CL201]: deadlock: 4 ranks wait for one another\n")
    assert {"ranks error 4", "contract error proven"} < set(rows(result))
    both = cli("compare", "none.cl", "stuck.cl", "whole.cl", "--format", "json")
    assert both.code == 2
    first, second, third = json.loads(both.out)["patterns"]
    assert (first["label"], third["label"]) == ("none.cl", "whole")
    assert "none.cl" in first["error"]
    assert "CL201" in second["error"]


def test_more_ranks_than_a_machine_has_are_told_for_that_machine(cli: Cli) -> None:
    options = ("--world", "16", "--topology", "dgx-h100", "--topology", "dgx-h100-rails")
    result = cli("compare", "whole.cl", *options)
    assert result.code == 2
    assert "16 ranks" in result.err
    shown = rows(result)
    assert shown[shown.index("on dgx-h100") + 1] == "time does not fit"
    assert "over infiniband 15 KiB" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--set", "m=2"), "--set m: no pattern here has that parameter; there are n, k"),
        (("--set", "whole.m=2"), "--set whole.m: it has no such parameter; it has n, k"),
        (("--set", "hole.n=2"), "--set hole.…: no pattern here is called that; did you mean "),
        (("--set", "n"), "--set n: write name=value, as in `--set n=4Ki`"),
        (("--preset", "larg"), "--preset larg: no pattern here has it; did you mean `large`?"),
        (("--topology", "dgx"), "dgx"),
        (("a=whole.cl", "a=whole.cl"), "the label `a` is given twice"),
        (("-", "b=-"), "standard input can be read once; put the other pattern into a file"),
        (("whole.cl",) * 16, "17 patterns do not fit beside one another; give up to 16"),
    ],
)
def test_a_mistake_is_told_before_anything_is_compared(
    cli: Cli, options: tuple[str, ...], message: str
) -> None:
    result = cli("compare", "whole.cl", *options)
    assert (result.code, result.out) == (2, "")
    assert message in result.err


def test_what_does_not_fit_into_memory_is_not_run(cli: Cli) -> None:
    result = cli("compare", "whole.cl", "--measure", "--set", "n=4Ti", "--world", "2")
    assert (result.code, result.err) == (0, "")
    assert "measured on local ranks too large" in rows(result)


def test_a_run_that_fails_is_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def run(argv: list[str], **_: Any) -> SimpleNamespace:
        asked.append(argv[3:])
        return SimpleNamespace(returncode=1, stderr="error: rank 1 was killed\n", stdout="")

    monkeypatch.setattr(subprocess, "run", run)
    result = cli("compare", "whole.cl", "--measure", "--preset", "large", "--set", "k=2")
    assert (result.code, result.err) == (1, "error: rank 1 was killed\n")
    assert "measured on local ranks failed" in rows(result)
    ((command, file, *options),) = asked
    assert (command, file) == ("run", "whole.cl")
    assert {"--nproc-per-node=2", "--set=n=4Ki", "--set=k=2", "--schedule=program"} <= {*options}


@pytest.mark.slow
def test_a_run_is_measured_on_real_ranks(cli: Cli) -> None:
    options = ("--measure", "--world", "2", "--set", "n=64", "--format", "json")
    (one,) = told(cli("compare", "whole.cl", *options)).values()
    assert one["measured"]["on"] == "gloo, cpu"
    assert 0 < one["measured"]["seconds"] < 100
