"""commlang in Python: loading, checking, planning, and the examples of docs/embedding.md."""

from __future__ import annotations

import doctest
import json
import pickle
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

import commlang
from commlang.errors import CommlangError, PatternError, UsageError
from commlang.execute.executor import Executor
from commlang.plan import Plan
from commlang.resolve.library import library_files, library_name

if TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "embedding.md"

REDUCE = """\
pattern reduce(x: t[n], n = 8, op = sum, t = float32):
    \"\"\"Add up.\"\"\"
    preset small: world = 3, n = 2
    all_reduce(x, op=op)
"""


# ----------------------------------------------------------------- loading


def test_a_pattern_is_found_by_file_by_name_and_in_text(tmp_path: Path) -> None:
    path = tmp_path / "two.cl"
    path.write_text(REDUCE + REDUCE.replace("reduce(", "other(", 1))
    assert commlang.load(path, "other").name == "other"
    assert commlang.load(f"{path}:other").name == "other"
    assert commlang.load("ring_all_reduce").name == "ring_all_reduce"
    pattern = commlang.loads(REDUCE)
    assert (pattern.name, pattern.doc, repr(pattern)) == (
        "reduce",
        "Add up.",
        "<Pattern reduce of <text>>",
    )
    with pytest.raises(UsageError, match=r"two\.cl has several patterns: write .*:reduce or .*"):
        commlang.load(path)
    with pytest.raises(UsageError, match=r"cannot read nothing\.cl: No such file"):
        commlang.load("nothing.cl")
    with pytest.raises(PatternError, match="did you mean `pattern`"):
        commlang.loads("patern f():\n")


def test_findings_are_returned_or_raised() -> None:
    assert commlang.loads(REDUCE).check(world=2) == []
    ring = commlang.loads(
        "pattern f(x: float32[8]):\n    send(x, dst=ranks.next)\n    recv(x, src=ranks.prev)\n"
    )
    (found,) = ring.check(world=2)
    assert found.code == "CL201"
    with pytest.raises(PatternError) as caught:
        ring.plan(world=2)
    assert [d.code for d in caught.value.diagnostics] == ["CL201"]
    assert [d.code for d in commlang.loads("pattern f():\n    barier()\n").check()] == ["CL101"]
    assert [d.code for d in ring.check(world=2, n=3)] == ["CL121"]


def test_check_for_a_backend() -> None:
    text = """\
pattern f(x: float32[n], y: float32[n], n = 8):
    inbox = async recv(y, src=1 - rank)
    outbox = async send(x, dst=1 - rank)
    wait(inbox)
    wait(outbox)
"""
    pattern = commlang.loads(text)
    assert pattern.check(world=2, backend="gloo") == []
    (found,) = pattern.check(world=2, backend="nccl", nccl_init="eager")
    assert (found.code, found.severity) == ("CL250", "error")
    assert {d.severity for d in pattern.check(world=2)} == {"warning"}
    with pytest.raises(UsageError, match="backend='ncl': there are rendezvous, gloo, nccl, mpi"):
        pattern.check(world=2, backend="ncl")
    with pytest.raises(UsageError, match="nccl_init='late': write 'lazy' or 'eager'"):
        pattern.check(world=2, nccl_init="late")


# ---------------------------------------------------------------- planning


def test_the_world_comes_from_the_caller_the_preset_or_the_pattern() -> None:
    pattern = commlang.loads(REDUCE)
    assert pattern.plan().world == 4
    small = pattern.plan(preset="small")
    assert (small.world, small.parameters["n"]) == (3, 2)
    other = pattern.plan(5, preset="small", n=7)
    assert (other.world, other.parameters["n"]) == (5, 7)
    assert len(pattern.program(world=3)) == 3
    meshed = "pattern f(x: float32[4]):\n    mesh a = 3, b = 2\n    all_reduce(x, group=a)\n"
    assert commlang.loads(meshed).plan().world == 6


@pytest.mark.parametrize(
    ("given", "parameters"),
    [
        ({"n": "4Ki"}, {"n": 4096}),
        ({"op": "max"}, {"op": "max"}),
        ({"op": "premul_sum(1/2)"}, {"op": "premul_sum(1/2)"}),
        ({"t": torch.float64}, {"t": "float64"}),
        ({"t": "int8"}, {"t": "int8"}),
    ],
)
def test_parameters_are_python_values_or_texts(
    given: dict[str, Any], parameters: dict[str, Any]
) -> None:
    plan = commlang.loads(REDUCE).plan(world=2, **given)
    assert plan.parameters == {"n": 8, "op": "sum", "t": "float32"} | parameters
    again = Plan.from_json(plan.to_json())
    assert again.fingerprint == plan.fingerprint
    whole, alone = plan.program(), again.program(1)
    assert alone.sites[0].op == whole.sites[0].op
    assert alone.sites[0].dtype == whole.sites[0].dtype


@pytest.mark.parametrize("half", [0.5, Fraction(1, 2), "1/2"])
def test_a_fraction_stays_one_in_json(half: object) -> None:
    plan = commlang.loads("pattern f(x: float32[4], a):\n    scale(x, a)\n").plan(world=1, a=half)
    assert plan.values["a"] == "1/2"
    assert Plan.from_json(plan.to_json()).program(0).arguments_of(0)["factor"] == Fraction(1, 2)


def test_tensors_bind_shapes() -> None:
    pattern = commlang.loads(REDUCE)
    for given in (torch.zeros(3), ("float32", (3,)), (torch.float32, [3])):
        plan = pattern.plan(world=2, tensors={"x": given})  # pyright: ignore[reportArgumentType]
        assert plan.parameters["n"] == 3
        assert plan.tensors["x"].shape == (3,)
    two = pattern.plan(world=2, t="float64", tensors={"x": torch.zeros(3, dtype=torch.float64)})
    assert two.tensors["x"].dtype == "float64"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"world": "4"}, "world='4': a world is a number of ranks"),
        ({"world": True}, "world=True: a world is a number of ranks"),
        ({"world": 0}, "a world of 0 ranks; there must be at least 1"),
        ({"preset": "smal"}, "`reduce` has no preset `smal`; did you mean `small`?"),
        ({"n": None}, "None cannot be the value of a parameter"),
        ({"n": "4 Kb"}, "n: `4 Kb` is not a value: "),
        ({"tensors": {"x": 3}}, "tensors['x'] is 3; give a tensor, or a pair as in ('float32', "),
        ({"tensors": {"x": ("float3", (2,))}}, "`float3` is no dtype; did you mean `float32`?"),
        ({"tensors": {"x": ("int8", (-2,))}}, "tensors['x']: shape [-2] has a negative dim"),
        ({"tensors": {"y": ("int8", (2,))}}, "`reduce` has no tensor parameter `y`"),
        (
            {"t": "float64", "tensors": {"x": ("int8", (2,))}},
            "parameter `x` is float64, the argument int8",
        ),
        ({"m": 3}, "`reduce` has no parameter `m`"),
        ({"max_events": 1}, "more than 1 events"),
    ],
)
def test_what_is_no_argument_is_refused_in_words(given: dict[str, Any], said: str) -> None:
    with pytest.raises(CommlangError) as caught:
        commlang.loads(REDUCE).plan(**given)
    assert said in str(caught.value)


# ------------------------------------------------------------ plans as data


def test_a_plan_of_text_carries_the_text() -> None:
    plan = commlang.loads(REDUCE).plan(world=2)
    fields = json.loads(plan.to_json())
    assert (fields["path"], fields["text"]) == ("<text>", REDUCE)
    read = Plan.from_json(plan.to_json())
    assert [len(read.program(rank)) for rank in range(2)] == [1, 1]
    fields["text"] = REDUCE.replace("n = 8", "n = 9")
    with pytest.raises(CommlangError, match="<text> or a file that it imports is not the one"):
        Plan.from_json(json.dumps(fields)).program(0)


def test_a_plan_of_a_file_names_it_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.cl").write_text(REDUCE)
    plan = commlang.load("f.cl").plan(world=2)
    assert (plan.path, plan.text) == (str(tmp_path / "f.cl"), None)
    assert plan.fingerprint == commlang.loads(REDUCE).plan(world=2).fingerprint
    monkeypatch.chdir("/")
    assert len(Plan.from_json(plan.to_json()).program(0)) == 1


@pytest.mark.parametrize(
    "change", [{"world": 3}, {"events": 5}, {"fingerprint": "0"}, {"proofs": ["all is well"]}]
)
def test_an_edited_plan_is_refused(change: dict[str, object]) -> None:
    fields = json.loads(commlang.loads(REDUCE).plan(world=2).to_json()) | change
    with pytest.raises(UsageError, match="the plan was edited"):
        Plan.from_json(json.dumps(fields))


def test_a_plan_of_another_version_is_refused() -> None:
    plan = commlang.loads(REDUCE).plan(world=2)
    old = plan.model_copy(update={"commlang": "0.0.1"})
    old = Plan.from_json(old.to_json())
    assert old.fingerprint != plan.fingerprint
    with pytest.raises(
        CommlangError, match=r"the plan is of commlang 0\.0\.1, this is .*; plan it"
    ):
        old.program(0)


def test_a_pickled_plan_leaves_its_programs_behind() -> None:
    plan = commlang.load("ring_all_reduce").plan(world=64)
    data = pickle.dumps(plan)
    assert len(data) < 10_000
    assert pickle.loads(data).fingerprint == plan.fingerprint


# ------------------------------------------------------- the package itself


def test_every_public_name_is_there() -> None:
    names: dict[str, object] = {}
    exec("from commlang import *", names)
    assert set(commlang.__all__) <= set(names)
    assert set(commlang.__all__) <= set(dir(commlang))
    assert names["Executor"] is Executor
    with pytest.raises(AttributeError, match="module 'commlang' has no attribute 'lods'"):
        commlang.lods  # pyright: ignore # noqa: B018


def test_planning_imports_no_torch() -> None:
    code = (
        "import sys, commlang; commlang.load('ring_all_reduce').plan(world=4).to_json(); "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


# ----------------------------------------------- many ranks in one process


@pytest.fixture
def fake() -> Generator[Any]:
    """Makes this process one rank of a world that is not there."""

    def start(rank: int, size: int) -> None:
        if dist.is_initialized():
            dist.destroy_process_group()
        dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=size)

    yield start
    if dist.is_initialized():
        dist.destroy_process_group()


EIGHT = ("training/ulysses", "training/fsdp_step", "pipeline/interleaved_1f1b")
"""Its heads do not go round 64 ranks; the others take too much of a CPU there."""
LIBRARY = [library_name(path) for path in library_files()]


@pytest.mark.parametrize("name", LIBRARY)
def test_every_library_pattern_binds_and_runs(name: str, fake: Any) -> None:
    plan = commlang.load(name).plan(world=8 if name in EIGHT else 64)
    for rank in {0, plan.world - 1}:
        fake(rank, plan.world)
        with Executor(Plan.from_json(plan.to_json()), stand_in=True) as ex:
            results = ex.run()
            assert len(ex.steps) == len(ex.actions)
            assert set(results) == set(ex.program.tensors)


@pytest.mark.parametrize("rank", [0, 31, 63])
def test_a_ring_of_64_ranks_binds_on_each(rank: int, fake: Any) -> None:
    plan = commlang.load("ring_all_reduce").plan(world=64, n=100)
    fake(rank, 64)
    with Executor(plan) as ex:
        x = torch.ones(100)
        assert ex.run(x=x)["x"] is x
    assert len(ex.actions) == 3 * 63  # batch and accumulation, 63 times; batch, 63 times


# ---------------------------------------------------------------- the page


def _examples() -> str:
    blocks = re.findall(r"^```pycon\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    return "\n".join(blocks)


def test_the_examples_of_the_page_say_what_is_shown() -> None:
    test = doctest.DocTestParser().get_doctest(_examples(), {}, "embedding.md", str(PAGE), 0)
    told: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=told.append)
    assert result.failed == 0, "".join(told)
    assert result.attempted > 10


def test_every_script_of_the_page_is_run() -> None:
    """`tests/test_docs_commands.py` runs the console blocks; each script stands in one."""
    text = PAGE.read_text()
    scripts = re.findall(r"^<!-- file: (\S+) -->\n```python$", text, re.MULTILINE)
    assert len(scripts) == text.count("```python\n")
    for script in scripts:
        assert re.search(rf"^\$ .*\b{re.escape(script)}\b", text, re.MULTILINE), script
