"""`commlang calibrate` on real ranks, and a run that is predicted with its file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from commlang.topology import load_machine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Result

    Cli = Callable[..., Result]

SMALL = ("--sizes", "1Ki..16Ki", "--iters", "2", "--warmup", "0", "--backend", "gloo")
TEXT = """\
pattern main(x: float32[n], y: float32[n], n = 1Ki):
    work = async all_reduce(x)
    scale(y, 2)
    wait(work)
    parallel:
        send(x, dst=ranks.next)
        recv(y, src=ranks.prev)
"""


def test_a_machine_is_measured_and_a_run_predicted_with_it(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text(TEXT)
    done = cli("calibrate", "-o", "here.yaml", "--name", "here", "--nproc-per-node", "2", *SMALL)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("2 ranks on gloo, ")
    assert "\nwritten to here.yaml; " in done.out
    assert sorted(p.name for p in folder.iterdir()) == ["a.cl", "here.yaml"]
    text = (folder / "here.yaml").read_text()
    for fact in ("# calibrated: ", "# ranks: 2 on gloo", "# host: ", "# versions: commlang "):
        assert fact in text
    machine = load_machine("here.yaml")
    assert (machine.name, machine.size) == ("here", 2)
    measured = machine.collective("all_reduce", 2)
    assert measured is not None
    assert [size for size, _ in measured.points] == [1 << 10, 4 << 10, 16 << 10]
    assert all(seconds > 0 for _, seconds in measured.points)

    common = ("run", "a.cl", "--nproc-per-node", "2", "--predict", "here.yaml", "--iters", "2")
    done = cli(*common, "--backend", "gloo")
    assert (done.code, done.err) == (0, "")
    rows = done.out[done.out.index("predicted on here:") :].splitlines()
    assert rows[1].split() == ["line", "statement", "measured", "predicted", "error"]
    places = [row.split()[0] for row in rows[2:5]]
    assert places == ["2:18", "2:18", "3:5"]
    assert any(row.lstrip().startswith("the whole") for row in rows)
    assert any("in the middle" in row for row in rows)

    done = cli(*common, "--backend", "gloo", "--json")
    found = json.loads(done.out)["prediction"]
    assert found["machine"] == "here"
    assert found["whole"]["error"] == pytest.approx(
        found["whole"]["predicted"] / found["whole"]["measured"] - 1
    )
    texts = [s["text"] for s in found["statements"]]
    assert texts[0] == "all_reduce(x)"
    assert all(s["predicted"] is not None for s in found["statements"])
    scale = next(s for s in found["statements"] if s["text"] == "scale(y, 2)")
    assert scale["predicted"] == pytest.approx(8192 / machine.compute.memory_bandwidth, rel=1e-3)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--sizes", "1Ki"), "one size gives no bandwidth"),
        (("--sizes", "1,2"), "--sizes from 4 bytes (a float32) to 256 MiB"),
        (("--sizes", "1Ki..1Gi"), "--sizes from 4 bytes (a float32) to 256 MiB"),
        (("-o", "none/a.yaml"), "cannot write none/a.yaml: there is no folder none"),
        (("--nproc-per-node", "1"), "1 is not in the range x>=2"),
    ],
)
def test_what_makes_no_sense_is_refused(cli: Cli, argv: tuple[str, ...], said: str) -> None:
    result = cli("calibrate", *argv)
    assert (result.code, result.out) == (2, "")
    assert said in result.err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--predict", "dgx-h10"), "there is no machine `dgx-h10`"),
        (("--predict", "pcie-box", "--nproc-per-node", "16"), "8 devices, fewer than 16 ranks"),
        (("--predict", "pcie-box", "--iters", "0"), "so there is nothing to compare"),
    ],
)
def test_a_prediction_that_cannot_be_is_refused(cli: Cli, argv: tuple[str, ...], said: str) -> None:
    result = cli("run", "all_reduce", "--backend", "gloo", *argv)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
