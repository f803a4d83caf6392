"""What is said of schedules, tried on real ranks and with torch's own code."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commlang.convert import parse_schedule, pattern_from_schedule, read_schedule
from commlang.convert.meetings import swaps
from commlang.convert.placement import place_stages
from commlang.errors import UsageError

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "pipelines"
ENDS_S, HANGS_S = 100, 3
"""How long a run gets that must end, and one that must not."""


def answer(program: str, *argv: str) -> dict[str, str]:
    """What a script prints, as `name: words` on each line."""
    result = subprocess.run(
        [sys.executable, EXAMPLES / program, *argv],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=115,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return dict(line.rsplit(": ", 1) for line in result.stdout.splitlines())


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"pipelines_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expected(name: str) -> str:
    """What `swaps` says, in the words of replay.py."""
    schedule = read_schedule(str(EXAMPLES / f"{name}.csv"))
    found = swaps(schedule, place_stages(schedule))
    mixed = ", ".join(f"{swap.recv} got {swap.got}" for swap in found)
    return f"ends, but {mixed}" if mixed else "ends"


def replayed(mode: str, timeout_s: int, *names: str) -> dict[str, str]:
    paths = [str(EXAMPLES / f"{name}.csv") for name in names]
    found = answer("replay.py", mode, str(timeout_s), *paths)
    assert tuple(found) == names
    return found


def test_on_gloo_all_end_and_get_what_was_said() -> None:
    found = replayed(
        "torch",
        ENDS_S,
        "interleaved_1f1b_4",
        "interleaved_1f1b_4_deferred",
        "dual_pipe_v_4_deferred",
        "zbv_zero_bubble_2_deferred",
        "issue_172668_first",
        "issue_172668_second",
        "receive_first",
    )
    assert found == {name: expected(name) for name in found}
    assert found["zbv_zero_bubble_2_deferred"] == (
        "ends, but 2RECV_B0 got 0SEND_F2, 1RECV_F2 got 3SEND_B0"
    )


def test_in_the_order_of_one_queue_those_end_that_were_said_to() -> None:
    found = replayed("blocking", ENDS_S, "interleaved_1f1b_2", "dual_pipe_v_2", "gpipe_4")
    assert set(found.values()) == {"ends"}


def test_in_the_order_of_one_queue_those_hang_that_were_said_to() -> None:
    found = replayed(
        "blocking",
        HANGS_S,
        "interleaved_1f1b_2_deferred",
        "looped_bfs_4_deferred",
        "issue_172668_first",
        "issue_172668_second",
        "receive_first",
    )
    assert set(found.values()) == {"hangs"}


def test_torch_trains_on_swapped_messages() -> None:
    cases = ("ZBVZeroBubble:early", "Interleaved1F1B:deferred", "ZBVZeroBubble:deferred")
    early, right, swapped = answer("torch_step.py", *cases).values()
    assert early == right == "right"
    assert swapped.startswith("gradients wrong by ")


def test_the_schedules_are_those_of_this_torch(tmp_path: Path) -> None:
    script("make").main(tmp_path)
    made = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.csv"))
    assert len(made) == 14 + 14 + 10
    for path in made:
        assert (tmp_path / path).read_text() == (EXAMPLES / path).read_text(), path


def test_the_order_of_1f1b_that_torch_shows_lacks_a_forward() -> None:
    make = script("make")
    rows = make.get_schedule_ops("1F1B", 2, 4, 1)
    order = "\n".join(",".join(str(a) for a in row if a and a.is_compute_op) for row in rows)
    with pytest.raises(UsageError, match=r"s.csv:2:5: `1B0` comes before 1F0, which it needs"):
        pattern_from_schedule(parse_schedule(order.encode(), "s.csv"), lower=True)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_over_a_range_early_receives_end_and_deferred_ones_do_not(
    ranks: int, tmp_path: Path
) -> None:
    make, judge = script("make"), script("judge")
    for name, (_, least) in make.SCHEDULES.items():
        wide = (least,) if least == 1 or name in make.V_SHAPED else (2, 3)
        for stages, batches in ((s, b) for s in wide for b in (2 * ranks, 4 * ranks)):
            rows = make.order(name, ranks, batches, stages)
            at = make.stage_to_rank(name, ranks, stages * ranks)
            for defer in (False, True) if least > 1 else (False,):
                path = tmp_path / f"{name}.csv"
                make.write(path, make.lower(rows, at, batches, defer=defer))
                said = judge.judge(str(path))
                assert said["torch's simulator"] == "accepts"
                assert said["gloo"] == "ends"
                assert said["nccl, eager"] == ("hangs" if defer else "ends"), (
                    name,
                    stages,
                    batches,
                )
                mixed = swaps(read_schedule(str(path)), [at[s] for s in range(len(at))])
                assert said["data"] == ("swapped" if mixed else "right"), (name, stages, batches)
                if not defer:
                    assert (said["nccl, lazy"], mixed) == ("ends", [])
