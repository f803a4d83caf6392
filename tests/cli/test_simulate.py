"""`commlang simulate`: the report, sweeps, plots, and what it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Result

MACHINE = """\
name: two-nodes
links:
  - {name: wire, latency: 1us, bandwidth: 1GB/s, overhead: 1us}
levels:
  - {name: node, kind: switch, link: wire, size: 8}
"""

PATTERN = """\
extern forward(x: update float32[n]):
    cost 10us

extern rest(x: update float32[n])

pattern step(x: float32[n], n = 250):
    preset big: world = 4, n = 25000
    forward(x)
    all_reduce(x)
    rest(x)
"""

REPORT = """\
step (n = 250)
  2 ranks on two-nodes, simulated, queueing for links; 6 events
  takes 14 µs; bubble 28.6 %
  Local work: it is 71 % of the critical path, most of it `forward(x)` (step.cl:8:5).
  no cost is known of `rest`, which counts as no time; give `--cost rest=3ms`

  critical path
  line  statement      events   time   share  mostly   algorithm
   8:5  forward(x)          1  10 µs  71.4 %  work
   9:5  all_reduce(x)       1   4 µs  28.6 %  latency  doubling
  10:5  rest(x)             1   0 ns     0 %

  rank  compute  exposed  of it late  idle  memory
     0    10 µs     4 µs        0 ns  0 ns  1000 B
     1    10 µs     4 µs        0 ns  0 ns  1000 B

  fullest links       bytes    busy
  device 0 → node 0  1000 B  7.14 %
  device 1 → node 0  1000 B  7.14 %
  node 0 → device 0  1000 B  7.14 %
  node 0 → device 1  1000 B  7.14 %
"""


@pytest.fixture
def files(folder: Path) -> Path:
    (folder / "step.cl").write_text(PATTERN, encoding="utf-8")
    (folder / "machine.yaml").write_text(MACHINE, encoding="utf-8")
    return folder


def simulate(cli: Callable[..., Result], *arguments: str) -> Result:
    return cli("simulate", "step.cl", "--topology", "machine.yaml", *arguments)


def test_the_report(cli: Callable[..., Result], files: Path) -> None:
    result = simulate(cli, "--world", "2", "--schedule", "program")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == REPORT.splitlines()


def test_options_change_what_comes_out(cli: Callable[..., Result], files: Path) -> None:
    arguments = ("--preset", "big", "--cost", "forward=1ms", "--straggler", "rank=2:2x")
    more = ("--algorithm", "all_reduce=ring", "--no-contention", "--format", "json")
    result = simulate(cli, *arguments, *more)
    found = json.loads(result.out)
    assert (found["world"], found["contention"], found["parameters"]) == (4, False, {"n": "25000"})
    # Rank 2 computes for 2 ms; a ring of four: 2 o + 6 L + 6/4 of 100 kB at 1 GB/s.
    assert found["makespan"] == pytest.approx(2e-3 + 8e-6 + 150e-6)
    assert [r["compute"] for r in found["ranks"]] == pytest.approx([1e-3, 1e-3, 2e-3, 1e-3])
    assert [r["late"] for r in found["ranks"]] == pytest.approx([1e-3, 1e-3, 0, 1e-3])
    assert found["critical"][1]["algorithms"] == ["ring"]
    assert found["uncosted"] == ["rest"]
    assert sum(link["bytes"] for link in found["links"]) == 2 * 4 * 150_000


def test_a_sweep_and_its_plot(cli: Callable[..., Result], files: Path) -> None:
    sweep = ("--sweep", "n=1Ki..4Ki", "--sweep", "world=2,4", "--cost", "forward=0")
    result = simulate(cli, *sweep, "--plot", "times.svg", "--algorithm", "all_reduce=ring")
    assert (result.code, result.err) == (0, "")
    lines = [line.split() for line in result.out.splitlines()]
    assert lines[0] == ["n", "world", "time", "exposed", "mostly"]
    # 2 o + 2 (n - 1) L + 2 (n - 1) / n of 4096 bytes
    assert lines[1] == ["1Ki", "2", "8.1", "µs", "8.1", "µs", "bandwidth"]
    assert lines[2] == ["1Ki", "4", "14.1", "µs", "14.1", "µs", "latency"]
    assert len(lines) == 7
    picture = ElementTree.parse(files / "times.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert len(picture.findall(f"{space}polyline")) == 2
    texts = [t.text for t in picture.iter(f"{space}text")]
    assert {"step on two-nodes", "n", "1Ki", "world = 2", "world = 4"} <= set(texts)
    again = simulate(cli, *sweep, "--plot", "times.svg")
    assert (again.code, again.out) == (2, "")
    assert "times.svg exists already" in again.err


def test_a_sweep_as_json_and_over_machines(cli: Callable[..., Result], files: Path) -> None:
    result = simulate(
        cli, "--sweep", "topology=machine.yaml,dgx-h100", "--format=json", "--preset=big"
    )
    found = json.loads(result.out)
    assert [point["machine"] for point in found] == ["two-nodes", "dgx-h100"]
    assert found[0]["makespan"] > found[1]["makespan"] > 0


def test_a_deadlock_is_refused_as_run_refuses_it(cli: Callable[..., Result], files: Path) -> None:
    text = "pattern p(x: float32[4], y: float32[4]):\n    send(x, dst=ranks.next)\n"
    (files / "step.cl").write_text(text + "    recv(y, src=ranks.prev)\n", encoding="utf-8")
    result = simulate(cli)
    assert (result.code, result.out) == (1, "")
    assert "error[CL201]: deadlock: 4 ranks wait for one another" in result.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--world", "9"], "two-nodes has 8 devices, fewer than 9 ranks"),
        (["--cost", "backward=1ms"], "cost of `backward`: `step` has no such extern or label"),
        (["--jitter", "200%"], "give a part from 0 to 1"),
        (["--plot", "x.svg"], "--plot draws a sweep; give one"),
        (["--plot", "x.png", "--sweep", "n=1,2"], "only SVG is drawn"),
        (["--plot", "no/x.svg", "--sweep", "n=x"], "cannot write no/x.svg: there is no folder no"),
        (["--sweep", "m=1,2"], "--set m: `step` has no such parameter"),
        (["--sweep", "world=x"], "--sweep world=x: write a number of ranks"),
        (["--algorithm", "all_reduce=hierarchical"], "are not spread evenly over several nodes"),
        (["--topology", "nowhere"], "nowhere"),
    ],
)
def test_what_makes_no_sense(
    cli: Callable[..., Result], files: Path, arguments: list[str], told: str
) -> None:
    result = simulate(cli, *arguments)
    assert (result.code, result.out) == (2, "")
    assert told in result.err
    assert "Traceback" not in result.err
