"""`commlang doctor`: what it prints of machines that are not there, and of this one."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from commlang.doctor import Lookup
from tests.cli.processes import finish
from tests.doctor.test_advice import CPU, GPU
from tests.warm import Warm

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from commlang.doctor import Probe

    from .conftest import Result

    Cli = Callable[..., Result]

SMALL = """\
pattern many(x: float32[64, n], n = 256):
    for i in range(64):
        all_reduce(x[i])
"""
STUCK = """\
pattern shift(x: float32[n], y: float32[n], n = 8):
    send(x, dst=ranks.next)
    recv(y, src=ranks.prev)
"""


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Callable[[Probe], None]:
    """Plays a machine."""

    def play(probe: Probe) -> None:
        monkeypatch.setattr("commlang.execute.machine.probe_machine", lambda variables: probe)

    return play


def machine(out: str) -> str:
    """What is said of this machine, without general practice."""
    return out.split("\nGeneral practice, not probed here\n")[0]


def test_a_machine_with_gpus(cli: Cli, on: Any) -> None:
    probe = replace(
        GPU,
        quota=6.5,
        numa_nodes=2,
        variables={"NCCL_IB_DISABLE": "1", "OMP_NUM_THREADS": "1"},
        master=Lookup("node0", None, 10.0, "no answer within 10 s"),
    )
    on(probe)
    result = cli("doctor")
    assert (result.code, result.err) == (1, "")
    assert (
        machine(result.out)
        == """\
torch 2.13.0+cu130, cuda 13.0; Python 3.12.1; host node1
  backends    gloo, nccl 2.28.9; torch is built without mpi, ucc
  devices     8 NVIDIA H100 80GB HBM3 (80 GiB each); 28 pairs by NV18
  processors  8 cores, of which 6.5 are granted, 2 NUMA nodes
  memory      64 GiB (60 GiB free), /dev/shm 32 GiB (32 GiB free)
  limits      nofile 65,536, memlock unlimited, nproc unlimited
  network     eth0 100 Gb/s, mlx5_0:1 InfiniBand ACTIVE 400 Gb/sec (4X NDR)
  names       node1 is 10.0.0.1, told in 1 ms; node0 has no address (no answer within 10 s)
  variables   NCCL_IB_DISABLE=1, OMP_NUM_THREADS=1

Of this machine
  DR203 broken: MASTER_ADDR=node0 has no address: no answer within 10 s
      why: no rank can meet the others there
      do:  set it to a name or an address of rank 0's host that all hosts know
      see: https://docs.pytorch.org/docs/stable/distributed.html#environment-variable-initialization
  DR105 warning: 8 cores are seen, of which the control group grants 6.5
      why: threads are made for all cores, and all of them stand still when the share is used up
      do:  set OMP_NUM_THREADS so that all ranks have 6.5 threads at most
      see: https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu-interface-files
  DR302 warning: NCCL_IB_DISABLE is set
      why: NCCL then goes over TCP between hosts, though there is mlx5_0:1 InfiniBand ACTIVE 400 \
Gb/sec (4X NDR)
      do:  unset it
      see: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
  DR005 advice: torch sees 8 GPUs and has nccl 2.28.9
      why: it is the fastest for tensors on GPUs, and goes over NVLink and GPUDirect
      do:  use init_process_group("cpu:gloo,cuda:nccl", device_id=…), or `--backend nccl`
      see: https://docs.pytorch.org/docs/stable/distributed.html#which-backend-to-use
  DR106 advice: memory is spread over 2 NUMA nodes
      why: a rank whose cores, memory and GPU are on different nodes crosses between them
      do:  bind ranks: torchrun --numa-binding=node, or numactl for each
      see: https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""
    )
    assert result.out.endswith("\n\n1 broken, 2 warnings, 2 pieces of advice\n")


def test_a_machine_of_which_there_is_nothing_to_say(cli: Cli, on: Any) -> None:
    on(CPU)
    result = cli("doctor")
    assert result.code == 0
    assert "\n\nOf this machine\n  nothing\n" in machine(result.out)
    assert "  DR901: InfiniBand or RoCE between nodes\n      why: " in result.out
    assert result.out.endswith("\n\nnothing to say of this machine\n")


def test_advice_for_a_pattern_is_that_of_lint(cli: Cli, on: Any, folder: Path) -> None:
    (folder / "small.cl").write_text(SMALL)
    on(CPU)
    result = cli("doctor", "small.cl", "--world", "2")
    assert result.code == 0
    assert "\nOf the pattern\n\nadvice[CL401]: " in result.out
    assert "--> small.cl:3:9" in result.out
    found = json.loads(cli("doctor", "small.cl", "--world", "2", "--format", "json").out)
    assert [f["code"] for f in found["findings"]] == ["CL401"]
    lint = cli("lint", "small.cl", "--world", "2", "--advice", "--output-format", "json")
    (advice,) = json.loads(lint.out)["findings"]
    assert found["findings"][0]["message"] == advice["message"]
    one = cli("doctor", "all_reduce")
    assert (one.code, "\nOf the pattern\n  nothing\n" in one.out) == (0, True)


def test_a_pattern_that_cannot_run_is_an_error(cli: Cli, on: Any, folder: Path) -> None:
    (folder / "stuck.cl").write_text(STUCK)
    on(CPU)
    result = cli("doctor", "stuck.cl")
    assert result.code == 1
    assert "error[CL201]: deadlock: 4 ranks wait for one another" in result.out
    assert json.loads(cli("doctor", "stuck.cl", "--format=json").out)["ok"] is False


@pytest.mark.parametrize(
    ("probe", "codes"),
    [
        (CPU, []),
        (GPU, []),
        (replace(GPU, backends=CPU.backends), ["CL410"]),
        (replace(GPU, backends=CPU.backends, devices=GPU.devices[:2]), ["CL410", "CL411"]),
    ],
)
def test_advice_is_for_what_the_machine_has(
    cli: Cli, on: Any, probe: Probe, codes: list[str]
) -> None:
    on(probe)
    argv = ("doctor", "all_reduce", "--world", "8", "--set", "n=64Mi", "--format", "json")
    assert [f["code"] for f in json.loads(cli(*argv).out)["findings"]] == codes


@pytest.mark.parametrize(
    ("argv", "code", "told"),
    [
        (("--world", "2"), 2, "--set, --preset and --world are for a pattern; give its file"),
        (("none.cl",), 2, "cannot read none.cl: No such file or directory"),
        (("all_reduce", "--set", "m=2"), 2, "--set m: `main` has no such parameter; it has n"),
        (("all_reduce", "--format", "yaml"), 2, "invalid value for '--format'"),
        (("bad.cl",), 1, "CL001"),
        (("binary.cl",), 2, "binary.cl"),
    ],
)
def test_mistakes(
    cli: Cli, on: Any, folder: Path, argv: tuple[str, ...], code: int, told: str
) -> None:
    (folder / "bad.cl").write_text("patern a():\n")
    (folder / "binary.cl").write_bytes(b"\xff\x00\xfe")
    on(CPU)
    result = cli("doctor", *argv)
    assert (result.code, result.out) == (code, "")
    assert told in result.err


def test_this_machine(tmp_path: Path) -> None:
    """For real: what it finds is not known here, but that it finds the same for both forms."""
    environment = os.environ | {"NCCL_P2P_DISABLE": "1", "GLOO_SOCKET_IFNAME": "no-such-card"}
    argv = ("doctor", "--format", "json")
    found = [Warm(each, tmp_path, environment) for each in (argv, argv[:1])]
    (code, out, err), (text_code, text, text_err) = finish(*found)
    assert (code, err, text_code, text_err) == (1, "", 1, "")
    told = json.loads(out)
    assert (told["version"], told["ok"]) == (1, False)
    assert {"DR301", "DR312"} <= {advice["code"] for advice in told["advice"]}
    assert told["probe"]["variables"]["NCCL_P2P_DISABLE"] == "1"
    assert f"torch {told['probe']['torch']}" in text
    for advice in told["advice"]:
        assert f"  {advice['code']} {advice['severity']}: {advice['fact']}" in text
