"""What docs/from-torch.md says of torch, gloo and commlang is so.

A ```python block runs on as many gloo ranks as its mark says (`tests/from_torch/ranks.py`), and
the ```text block below it holds a line for each: what `shows` names in the end, or how the rank
failed. Each `<!-- file: … -->` block is checked, and must give the findings listed here and no
others. The console blocks are run by test_docs_commands.py.
"""

from __future__ import annotations

import ast
import json
import os
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _DEFAULT_FIRST_BUCKET_BYTES

from commlang.checks import check_program
from commlang.errors import PatternError, UsageError
from commlang.execute.environment import detect
from commlang.execute.world import choose_backend
from commlang.program import build
from commlang.resolve.check import check_all
from commlang.resolve.modules import Definition, load_module
from commlang.source import Source

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "from-torch.md").read_text(encoding="utf-8")
RANKS = Path(__file__).parent / "from_torch" / "ranks.py"

BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]+) -->\n)?^```(?P<kind>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
MARK = re.compile(
    r"(?P<how>ranks|alone): (?P<ranks>\d), shows: (?P<shows>\w+)"
    r"(?:, cuda: (?P<cuda>copy))?(?:, setup: (?P<setup>\w+))?"
)
SETUP = {None: "", "ddp": "import steps\nmodel, local_rank = steps.model(), rank\n"}
LOST = re.compile(r"Connection reset by peer|Broken pipe")
"""Whether a rank sees these of one that is gone, or `Connection closed by peer`, is chance."""


@dataclass(frozen=True, slots=True)
class Snippet:
    where: str
    case: dict[str, Any]
    outcome: list[str]


def _blocks() -> list[tuple[str, str, str, str]]:
    """Place, mark, kind and body of every block of the page."""
    return [
        (f"line {TEXT.count(chr(10), 0, m.start('body'))}", m["mark"] or "", m["kind"], m["body"])
        for m in BLOCK.finditer(TEXT)
    ]


def _snippets() -> list[Snippet]:
    found: list[Snippet] = []
    for (where, mark, kind, body), (_, _, below, outcome) in pairwise(_blocks()):
        if kind == "python":
            says = MARK.fullmatch(mark)
            assert says is not None, f"{where}: {mark}"
            assert below == "text", f"{where}: the outcome follows"
            case = {
                "code": SETUP[says["setup"]] + body,
                "ranks": int(says["ranks"]),
                "shows": says["shows"],
                "alone": says["how"] == "alone",
                "cuda": says["cuda"] or "self",
            }
            found.append(Snippet(where, case, outcome.splitlines()))
    return found


SNIPPETS = _snippets()
STEPS = {
    mark.removeprefix("steps: "): body.splitlines()
    for _, mark, _, body in _blocks()
    if mark.startswith("steps: ")
}
FILES = {
    mark.removeprefix("file: "): body for _, mark, _, body in _blocks() if mark.startswith("file: ")
}

SCATTER = next(snippet.case for snippet in SNIPPETS if "dist.scatter(" in snippet.case["code"])
CAUGHT = "try:\n    {}\nexcept ValueError as error:\n    tensor = str(error)\n"
NO_NCCL = 'dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)\n'
EXTRA: dict[str, dict[str, Any]] = {
    "view": {"code": "import steps", "ranks": 2, "shows": "steps.ddp(view=True)"},
    "copied": {"code": "import steps", "ranks": 2, "shows": "steps.ddp_gradients(view=False)"},
    "viewed": {"code": "import steps", "ranks": 2, "shows": "steps.ddp_gradients(view=True)"},
    "caught": {
        **SCATTER,
        "code": re.sub(r"(dist\.scatter\(.*\))\n", lambda m: CAUGHT.format(m[1]), SCATTER["code"]),
        "timeout": 2.0,
    },
    "nccl": {
        "code": f"import torch.distributed as dist\n{NO_NCCL}",
        "ranks": 1,
        "shows": "None",
        "alone": True,
    },
}


@pytest.fixture(scope="module")
def told() -> dict[str, list[str]]:
    """How each rank of each case ended."""
    cases = {snippet.where: snippet.case for snippet in SNIPPETS} | EXTRA
    for steps in STEPS:
        cases[steps] = {"code": "import steps", "ranks": 2, "shows": f"steps.{steps}"}
    result = subprocess.run(
        [sys.executable, str(RANKS)],
        input=json.dumps(cases),
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def _agrees(shown: str, line: str) -> bool:
    pattern = re.escape(shown).replace(re.escape("..."), ".*")
    return re.fullmatch(pattern, LOST.sub("Connection closed by peer", line)) is not None


# --------------------------------------------------------------------------------- torch


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.where)
def test_torch_does_what_is_shown(snippet: Snippet, told: dict[str, list[str]]) -> None:
    lines = [f"rank {rank}: {line}" for rank, line in enumerate(told[snippet.where])]
    assert len(lines) == len(snippet.outcome), lines
    for shown, line in zip(snippet.outcome, lines, strict=True):
        assert _agrees(shown, line), f"{shown}\n{line}"


def test_every_block_of_python_is_run() -> None:
    assert len(SNIPPETS) == TEXT.count("```python\n") == 15
    failing = [snippet for snippet in SNIPPETS if "Error: " in "".join(snippet.outcome)]
    assert len(failing) == 5
    assert sum("SIGABRT: " in line for snippet in SNIPPETS for line in snippet.outcome) == 1


def test_only_what_is_left_out_may_differ() -> None:
    shown = "rank 1: RuntimeError: ... Connection closed by peer..."
    assert _agrees(shown, "rank 1: RuntimeError: [pair] Connection closed by peer [::1]:7. Check.")
    assert _agrees(shown, "rank 1: RuntimeError: [pair] Read error: Connection reset by peer. No.")
    assert not _agrees(shown, "rank 1: RuntimeError: Timed out waiting 25000ms for recv")
    assert not _agrees("rank 0: tensor([1.])", "rank 0: tensor([2.])")


def test_ranks_wait_for_one_that_caught_its_exception(told: dict[str, list[str]]) -> None:
    assert told["caught"][0].startswith("'Invalid usage of tensors with different dtypes")
    assert "RuntimeError: " in told["caught"][1]
    assert "Timed out waiting 2000ms" in told["caught"][1]


@pytest.mark.skipif(dist.is_nccl_available(), reason="this torch has NCCL")
def test_a_backend_that_is_not_built_in(told: dict[str, list[str]]) -> None:
    (said,) = told["nccl"]
    assert said == "RuntimeError: Distributed package doesn't have NCCL built in"
    assert f"`{said}`" in TEXT
    with pytest.raises(UsageError) as refused:
        choose_backend("nccl", torch.device("cpu"))
    shown = str(refused.value).replace(torch.__version__, "2.13.0+cpu")
    assert f"\n{shown}\n" in TEXT


@pytest.mark.parametrize("steps", STEPS)
def test_a_step_says_what_is_shown(steps: str, told: dict[str, list[str]]) -> None:
    assert [ast.literal_eval(line) for line in told[steps]] == [STEPS[steps]] * 2


def test_ddp_gives_means_and_a_bucket_view_changes_no_communication(
    told: dict[str, list[str]],
) -> None:
    assert [ast.literal_eval(line) for line in told["view"]] == [STEPS["ddp()"]] * 2
    for case, storages in (("copied", 6), ("viewed", 2)):
        for line in told[case]:
            gradients = ast.literal_eval(line)
            assert gradients["from_mean"] < 1e-4 * gradients["from_own"], gradients
            assert gradients["from_own"] > 1
            assert gradients["storages"] == storages


def test_an_address_in_the_script_hides_the_one_of_torchrun(tmp_path: Path) -> None:
    """The page's snippet, less NCCL and with an address where nobody listens, for two seconds."""
    code: str = SNIPPETS[0].case["code"]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        for old, new in {
            "192.168.1.1": "127.0.0.1",
            "29500": str(taken.getsockname()[1]),
            'backend="nccl"': 'backend="gloo", timeout=__import__("datetime").timedelta(seconds=2)',
        }.items():
            assert code.count(old) == 1
            code = code.replace(old, new)
        (tmp_path / "script.py").write_text(code, encoding="utf-8")
        result = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", "script.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert result.returncode == 1
    assert "DistNetworkError: The client socket has timed out" in result.stderr


# ------------------------------------------------------------------------------ commlang

FINDINGS: dict[str, list[tuple[str, int, int, str]]] = {
    "broadcast_mixed.cl": [
        ("CL215", 10, 9, "collectives disagree in dtype: int64 on rank 0, float32 on rank 1")
    ],
    "scatter_mixed.cl": [
        ("CL113", 8, 25, "scatter: `tensor` is float32 and `scatter_list` is int64")
    ],
    "gather_everywhere.cl": [
        ("CL102", 3, 20, "gather: `gather_list` is given on a rank that is not `dst`")
    ],
    "all_gather_mixed.cl": [
        ("CL113", 5, 16, "all_gather: `tensor` is int64 and `tensor_list` is float32")
    ],
    "received_in_a_copy.cl": [("CL240", 3, 5, "rank 1: tensor[0] is not what the contract says")],
    "moved.cl": [("CL103", 3, 14, "a tensor has no attribute `cuda`")],
    "ddp_one_handle.cl": [
        ("CL207", 4, 25, "handle `reduced` is bound again on rank 0 (b = 2) before its wait")
    ],
}
CLEAN = FILES.keys() - FINDINGS.keys()


def _definition(name: str, pattern: str = "main") -> Definition:
    return load_module(Source(FILES[name], name)).symbols[pattern]


def _found(name: str, world: int) -> list[tuple[str, int, int, str]]:
    """Code, line, column and message of every finding of a file of the page."""
    try:
        module = load_module(Source(FILES[name], name))
        found = check_all(module) or [
            finding
            for pattern in module.exported
            for finding in check_program(build(module.symbols[pattern], world, {}))
        ]
    except PatternError as error:
        found = list(error.diagnostics)
    places = [d.labels[0].source.position(d.labels[0].span.start) for d in found]
    return [(d.code, *place, d.message) for d, place in zip(found, places, strict=True)]


@pytest.mark.parametrize("world", [2, 3, 4])
@pytest.mark.parametrize("name", FINDINGS)
def test_a_faulty_pattern_is_named_before_the_run(name: str, world: int) -> None:
    assert _found(name, world) == FINDINGS[name]
    (code, line, column, message) = FINDINGS[name][0]
    shown = rf"^\$ commlang lint {name}\nerror\[{code}\]: {re.escape(message)}\n +--> {name}:"
    assert re.search(rf"{shown}{line}:{column}$", TEXT, re.MULTILINE)


@pytest.mark.parametrize("world", [2, 3, 4])
@pytest.mark.parametrize("name", sorted(CLEAN))
def test_a_right_pattern_is_clean(name: str, world: int) -> None:
    assert _found(name, world) == []


def test_every_pattern_of_the_page_is_checked() -> None:
    assert len(FILES) == TEXT.count("```commlang\n") == len(FINDINGS) + len(CLEAN) == 15


def _said(definition: Definition, world: int) -> list[str]:
    """Names and element counts of the collectives of rank 0, as a step of torch is told."""
    program = build(definition, world, {})
    rows = [row for row in range(len(program.rank)) if program.rank[row] == 0]
    told: list[str] = []
    for row in rows:
        name = program.site_of(row).name
        if hasattr(dist, name):
            first, count = int(program.first[row]), int(program.count[row])
            told.append(f"{name} {max(program.operands.length[first : first + count].tolist())}")
    return told


def test_the_pattern_of_ddp_says_what_ddp_says() -> None:
    assert STEPS["ddp()"][-1] == f"backward: {', '.join(_said(_definition('ddp_buckets.cl'), 2))}"
    # The last layer closes the first bucket, for it alone is as large as that need be.
    assert 4 * 524800 >= _DEFAULT_FIRST_BUCKET_BYTES == 1 << 20


def test_fsdp_gathers_twice_and_scatters_once_a_layer() -> None:
    said = " ".join(STEPS["fsdp()"])
    assert (said.count("all_gather_into"), said.count("reduce_scatter")) == (6, 3)
    path = ROOT / "patterns" / "training" / "fsdp_step.cl"
    ours = _said(load_module(Source.read(path)).symbols["fsdp_step"], 2)
    names = [line.split()[0] for line in ours]
    # Of four layers, the last two stay whole between forward and backward.
    assert (names.count("all_gather_single"), names.count("reduce_scatter_single")) == (6, 4)


def test_small_tensors_make_many_calls_of_the_same_data() -> None:
    assert _said(_definition("small.cl", "one_by_one"), 2) == ["all_reduce 256"] * 100
    assert _said(_definition("small.cl", "at_once"), 2) == ["all_reduce 25600"]


# ------------------------------------------------------------------------------ starting

MASTER = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"}
LAUNCHERS = {
    "torchrun": {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", **MASTER},
    "slurm": {
        "SLURM_STEP_ID": "0",
        "SLURM_PROCID": "3",
        "SLURM_NTASKS": "4",
        "SLURM_LOCALID": "1",
        **MASTER,
    },
    "mpi": {
        "OMPI_COMM_WORLD_RANK": "3",
        "OMPI_COMM_WORLD_SIZE": "4",
        "OMPI_COMM_WORLD_LOCAL_RANK": "1",
        **MASTER,
    },
}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_rank_finds_its_place_in_what_the_launcher_has_set(launcher: str) -> None:
    before = dict(LAUNCHERS[launcher])
    info = detect(LAUNCHERS[launcher])
    assert info is not None
    assert (info.source, info.rank, info.world_size, info.local_rank) == (launcher, 3, 4, 1)
    assert (info.master_addr, info.master_port) == ("10.0.0.1", 29500)
    assert LAUNCHERS[launcher] == before
    assert detect(MASTER) is None


def test_gloo_is_the_default_on_cpus() -> None:
    assert choose_backend("auto", torch.device("cpu")) == "gloo"


def test_what_the_page_points_to_is_there() -> None:
    paths = set(re.findall(r"patterns/[\w/]+\.cl", TEXT))
    assert len(paths) == 4
    assert [path for path in sorted(paths) if not (ROOT / path).is_file()] == []
