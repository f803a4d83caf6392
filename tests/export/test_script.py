"""What scripts look like: golden/NAME.txt word for word, and for the whole library what ruff says.

python -m tests.export.test_script        writes the golden files anew
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from commlang.errors import PatternError
from commlang.export import export_python
from commlang.export.expressions import CannotExport
from commlang.plan import make_plan
from commlang.program import build
from commlang.resolve.modules import Definition, load_module
from commlang.source import Source
from commlang.verify import find_pattern
from tests.cli.processes import finish
from tests.execute.test_library_on_gloo import LIBRARY, RUNS_ON, all_values, exported, name_of
from tests.export.test_on_gloo import CORNERS, ROOT
from tests.ports import free_port
from tests.warm import Warm

GOLDEN = Path(__file__).with_name("golden")
WORLDS = {"ring_all_reduce": 4, "one_f_one_b": 4, "training_step_3d": 8, "fsdp_step": 2}


def written(name: str) -> str:
    definition = find_pattern(name)
    return export_python(build(definition, WORLDS[name]), command=f"{name}.py")


def main_of(text: str) -> Definition:
    return load_module(Source(text, "main.cl")).symbols["main"]


def body_of(text: str) -> str:
    """The lines of the function that a pattern `main` of main.cl becomes, without docstring."""
    script = export_python(build(main_of(text), 4))
    found = re.search(
        r'^def main_2\(.*?^    """From main.cl:\d+."""\n(.*?)\n\n\n', script, re.M | re.S
    )
    assert found is not None, script
    return found[1]


@pytest.mark.parametrize("name", WORLDS)
def test_scripts_are_as_they_were(name: str) -> None:
    assert written(name) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_scripts_of_the_library_are_formatted_and_complete(tmp_path: Path) -> None:
    for definition in exported(LIBRARY):
        for world in (4, 8):
            if world in RUNS_ON.get(name_of(definition), (4, 8)):
                for number, values in enumerate(all_values(definition, world)):
                    text = export_python(build(definition, world, values))
                    path = tmp_path / f"{name_of(definition)}_{world}_{number}.py"
                    path.write_text(text, encoding="utf-8")
                    with warnings.catch_warnings():
                        warnings.simplefilter("error")
                        compile(text, str(path), "exec")
                    assert not re.search(r"^\s*(import|from) commlang", text, re.M)
    ruff = [sys.executable, "-m", "ruff"]
    plain = ["--isolated", "--line-length", "100", str(tmp_path)]
    for command in (["format", "--check"], ["check", "--select", "E,F,W,I,B,PLE,UP"]):
        done = subprocess.run(
            [*ruff, *command, *plain], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout


def test_a_plan_and_its_program_give_one_script() -> None:
    plan = make_plan(find_pattern("ring_all_reduce"), 4, schedule="overlap")
    assert export_python(plan) == export_python(build(plan.definition, 4))


def test_an_unsound_program_is_refused_with_all_findings() -> None:
    text = """\
pattern main(x: float32[n], y: float32[n], n = 8):
    send(x, dst=ranks.next)
    recv(y, src=ranks.prev)
"""
    with pytest.raises(PatternError) as refused:
        export_python(build(main_of(text), 4))
    assert [d.code for d in refused.value.diagnostics] == ["CL201"]


def test_what_has_no_form_in_a_script_is_named_with_its_place() -> None:
    text = """\
pattern main(x: float32[2, 2], t: int[2, 2] = [[1, 2], [3, 4]]):
    let f(a) = a[0, 1]
    scale(x, f(t))
    scale(f(x), 2)
"""
    with pytest.raises(CannotExport) as refused:
        export_python(build(main_of(text), 4))
    assert (
        str(refused.value)
        == """\
cannot export: this is a tensor in one call and a list in another
  --> main.cl:2:16
  |
2 |     let f(a) = a[0, 1]
  |                ^^^^^^^"""
    )
    assert refused.value.exit_code == 2


def test_more_loops_in_one_another_than_python_takes_are_refused() -> None:
    loops = [f"{'    ' * (i + 1)}for i{i} in range(1):" for i in range(21)]
    lines = ["pattern main(x: float32[4]):", *loops, f"{'    ' * 22}scale(x, 2)"]
    with pytest.raises(CannotExport, match="cannot export main: Python says: too many static"):
        export_python(build(main_of("\n".join(lines) + "\n"), 2))


def test_a_table_that_is_too_large_to_be_written_out_is_refused() -> None:
    text = "pattern main(x: float32[4], t: int[k]):\n    scale(x, t[0])\n"
    program = build(main_of(text), 2, {"t": list(range(100_001))})
    with pytest.raises(CannotExport, match="cannot export a table of 100,001 cells"):
        export_python(program)


def test_branches_that_no_rank_takes_are_left_out() -> None:
    text = """\
pattern main(x: float32[n], n = 8, verbose = false):
    if world > 8:
        barrier()
    elif rank == 0:
        fill(x, 1)
    if verbose:
        fill(x, 2)
    else:
        fill(x, 3)
    for r in range(world, 4):
        fill(x, r)
"""
    assert (
        body_of(text)
        == """\
    rank = dist.get_rank(group)
    if rank == 0:
        x.fill_(1)
    x.fill_(3)"""
    )


def test_one_work_is_a_variable_several_are_a_dict_and_perhaps_none_is_a_list() -> None:
    text = """\
pattern main(x: float32[4, n], n = 8):
    work = async all_reduce(x[0])
    scale(x[1], 1 / world)
    wait(work)
    for i in range(2):
        more[i, 0] = async all_reduce(x[i], op=max)
    wait(more[1, 0])
    wait(more)
    if rank == 0:
        some = async send(x[3], dst=1)
    if rank == 1:
        recv(x[3], src=0)
    wait(some)
"""
    assert (
        body_of(text)
        == """\
    rank = dist.get_rank(group)
    world = dist.get_world_size(group)
    more = {}
    some = []
    work = dist.all_reduce(x[0], group=group, async_op=True)
    x[1].mul_(1 / world)
    work.wait()
    for i in range(2):
        more[i, 0] = dist.all_reduce(x[i], op=dist.ReduceOp.MAX, group=group, async_op=True)
    more.pop((1, 0)).wait()
    wait_all(more)
    if rank == 0:
        some.append(dist.isend(x[3], group_dst=1, group=group))
    if rank == 1:
        dist.recv(x[3], group_src=0, group=group)
    wait_all(some)"""
    )


def test_a_name_that_hides_another_is_told_apart() -> None:
    text = """\
pattern main(x: float32[n], list: float32[n], n = 8):
    let k = 2
    for i in range(2):
        let k = k + i
        scale(x, k)
    scale(list, k)
"""
    assert (
        body_of(text)
        == """\
    k = 2
    for i in range(2):
        k_2 = k + i
        x.mul_(k_2)
    list_2.mul_(k)"""
    )


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    program = build(find_pattern("ring_all_reduce"), 2, {"n": 5})
    script = tmp_path / "ring.py"
    script.write_text(export_python(program), encoding="utf-8")
    return script


def printed_by_ring() -> list[str]:
    total = sum((7 * i + 13 * rank) % 11 for i in range(5) for rank in range(2))
    return [f"rank {rank}: x sums to {float(total)}" for rank in range(2)]


def test_a_script_runs_on_ranks_as_torchrun_starts_them(ring: Path, tmp_path: Path) -> None:
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    world = os.environ | place | {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    argv = (str(ring), "--backend", "gloo")
    ranks = [
        Warm(argv, tmp_path, world | {"RANK": rank, "LOCAL_RANK": rank}, module="tests.main")
        for rank in ("0", "1")
    ]
    assert finish(*ranks) == [(0, f"{line}\n", "") for line in printed_by_ring()]


@pytest.mark.slow
def test_a_script_runs_under_torchrun(ring: Path, tmp_path: Path) -> None:
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(ring)]
    environment = {n: v for n, v in os.environ.items() if n != "PYTHONPATH"} | {
        "OMP_NUM_THREADS": "1"
    }
    done = subprocess.run(
        [sys.executable, *command, "--backend", "gloo"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
        env=environment | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == printed_by_ring()


def test_every_corner_is_compiled_without_a_warning() -> None:
    module = load_module(Source.read(CORNERS))
    for name in module.exported:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compile(export_python(build(module.symbols[name], 4)), name, "exec")


if __name__ == "__main__":
    os.chdir(ROOT)
    for golden in WORLDS:
        (GOLDEN / f"{golden}.txt").write_text(written(golden), encoding="utf-8")
