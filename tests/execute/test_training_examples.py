"""The training examples learn what they would without commlang, also as a user starts them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import commlang
from tests.execute import examples_work as work
from tests.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).parents[2]
MULTI_NODE = work.EXAMPLES / "multi_node"
DEADLINE_S = 300
STEP = re.compile(r"step +(\d+)  loss (\d+\.\d+)")
LEARNT = r"parameters as by torch's own reduction, largest difference \d.*"


def losses(printed: list[str]) -> list[float]:
    """The losses of the steps, which are counted from 0."""
    found = [match for line in printed if (match := STEP.fullmatch(line))]
    assert [int(match[1]) for match in found] == list(range(len(found)))
    return [float(match[2]) for match in found]


def test_a_pipeline_learns_to_the_bit_what_one_process_does(ranks: Any) -> None:
    (code, quiet), (last_code, printed) = ranks(work.pipeline, 2)
    assert (code, last_code) == (0, 0)
    assert quiet == []
    first, *_, verdict = printed
    assert first.startswith("1F1B on 2 ranks (gloo, cpu): 2 layers, 8 micro-batches of 4 texts")
    assert verdict == "losses and parameters equal those of one process, bit by bit"
    one, two = losses(printed)
    assert two < one


def test_the_schedule_of_the_pipeline_is_sound_on_nccl() -> None:
    sizes = {"micro": 8, "b": 4, "h": 2048, "dtype": "float32"}
    for nccl_init in ("lazy", "eager"):
        pattern = commlang.load("one_f_one_b")
        assert pattern.check(4, backend="nccl", nccl_init=nccl_init, **sizes) == []


def test_data_parallel_training_learns_what_torch_does(ranks: Any) -> None:
    (code, printed), (other_code, quiet) = ranks(work.multi_node, 2)
    assert (code, other_code) == (0, 0)
    assert quiet == []
    assert printed[0] == "DDP on 2 nodes of 1 ranks (gloo, cpu), by hierarchical_all_reduce"
    assert len(losses(printed)) == 2
    assert re.fullmatch(LEARNT, printed[-1])


def environment(**more: str) -> dict[str, str]:
    """That of a user with commlang installed; what runs these tests may be a rank itself."""
    paths = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    return os.environ | paths | {"OMP_NUM_THREADS": "1"} | more


def check_two_nodes(printed: str) -> None:
    lines = printed.splitlines()
    assert "DDP on 2 nodes of 2 ranks (gloo, cpu), by hierarchical_all_reduce" in lines, printed
    assert len(losses(lines)) == 3, printed
    assert any(re.fullmatch(LEARNT, line) for line in lines), printed


FAKES = {
    "scontrol": """#!/bin/bash
[ "$*" = "show hostnames node[1-2]" ] && printf 'localhost\\nnode2\\n'
""",
    # One task for each node, as the real one; the command comes after the options.
    "srun": """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
SLURM_PROCID=0 SLURM_NODEID=0 "$@" & first=$!
SLURM_PROCID=1 SLURM_NODEID=1 "$@" & second=$!
wait $first && wait $second
""",
}


@pytest.mark.slow
def test_the_batch_script_trains_on_two_nodes(tmp_path: Path) -> None:
    for name, text in FAKES.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    slurm = {
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NODELIST": "node[1-2]",
        "SLURM_JOB_NUM_NODES": "2",
        "RANKS_PER_NODE": "2",
        "MASTER_PORT": str(free_port()),
    }
    found = environment(**slurm)
    found["PATH"] = f"{tmp_path}:{found['PATH']}"
    done = subprocess.run(
        ["bash", "train.sbatch", "--steps=3", "--check", "--device=cpu"],
        cwd=MULTI_NODE,
        env=found,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    check_two_nodes(done.stdout)


def test_the_batch_script_is_bash() -> None:
    done = subprocess.run(
        ["bash", "-n", str(MULTI_NODE / "train.sbatch")], capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def ip(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["ip", *arguments], capture_output=True, text=True, timeout=20, check=False
    )


@pytest.fixture
def two_nodes() -> Generator[list[str]]:
    """Two network namespaces of this machine, with a cable between them, 10.213.7.1 and .2."""
    names = [f"commlang-{os.getpid()}-{number}" for number in (1, 2)]
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("needs root and `ip` to make network namespaces")
    with ExitStack() as stack:
        for name in names:
            made = ip("netns", "add", name)
            if made.returncode:
                pytest.skip(f"no network namespaces here: {made.stderr.strip()}")
            stack.callback(ip, "netns", "delete", name)
        cable = ["type", "veth", "peer", "name", "node0", "netns", names[1]]
        made = ip("-n", names[0], "link", "add", "node0", *cable)
        if made.returncode:
            pytest.skip(f"no pair of virtual network devices here: {made.stderr.strip()}")
        for number, name in enumerate(names, start=1):
            ip("-n", name, "addr", "add", f"10.213.7.{number}/24", "dev", "node0")
            for device in ("lo", "node0"):
                assert ip("-n", name, "link", "set", device, "up").returncode == 0
        yield names


@pytest.mark.slow
def test_two_nodes_of_a_network_train(two_nodes: list[str]) -> None:
    torchrun = ["torchrun", "--nnodes=2", "--nproc-per-node=2", "--master-addr=10.213.7.1"]
    script = [str(MULTI_NODE / "train.py"), "--steps=3", "--check", "--device=cpu"]
    agents = [
        subprocess.Popen(
            ["ip", "netns", "exec", name, *torchrun, f"--node-rank={number}", *script],
            env=environment(GLOO_SOCKET_IFNAME="node0"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number, name in enumerate(two_nodes)
    ]
    try:
        printed = [agent.communicate(timeout=DEADLINE_S)[0] for agent in agents]
    finally:
        for agent in agents:
            agent.terminate()  # torchrun ends its ranks; no effect on one that has ended
            agent.wait(timeout=60)
    assert [agent.returncode for agent in agents] == [0, 0], printed
    check_two_nodes(printed[0])
