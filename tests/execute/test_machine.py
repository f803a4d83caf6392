"""What is looked at of a machine: texts and folders as of the kernel, and this machine itself."""

from __future__ import annotations

import os
import platform
import socket
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from commlang.execute import machine
from commlang.execute.machine import (
    cgroup_quota,
    gpus_of_driver,
    look_up,
    meminfo,
    probe_host,
    probe_machine,
    probe_torch,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_this_machine_is_looked_at() -> None:
    probe = probe_machine({"MASTER_ADDR": "127.0.0.1", "HOME": "/root", "NCCL_DEBUG": "WARN"})
    assert (probe.host, probe.python) == (platform.node(), platform.python_version())
    assert (probe.torch, probe.numpy, probe.torch_error) == (torch.__version__, True, "")
    assert probe.backends["gloo"] == ""
    assert (probe.backends["nccl"] is None) == (not torch.distributed.is_nccl_available())
    assert len(probe.devices) == torch.cuda.device_count()
    assert probe.cores == len(os.sched_getaffinity(0))
    assert "lo" in probe.interfaces
    assert probe.memory is not None
    assert probe.memory_free is not None
    assert 0 < probe.memory_free < probe.memory
    assert probe.limits["nofile"] > 0
    assert probe.variables == {"MASTER_ADDR": "127.0.0.1", "NCCL_DEBUG": "WARN"}
    assert probe.master is not None
    assert (probe.master.address, probe.master.error) == ("127.0.0.1", "")
    assert probe.own_name is not None
    assert probe.own_name.name == platform.node()


def test_a_torch_that_is_broken_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise OSError("libcudart.so.13: cannot open shared object file\nand more")

    monkeypatch.setattr(machine, "import_module", broken)
    error = "libcudart.so.13: cannot open shared object file"
    assert probe_torch() == {"torch": None, "torch_error": error}


def fake_torch(**more: Any) -> SimpleNamespace:
    def two() -> int:
        return 2

    properties = SimpleNamespace(name="NVIDIA H200", total_memory=141 << 30)
    cuda = SimpleNamespace(
        device_count=two,
        get_device_properties=lambda index: properties,
        nccl=SimpleNamespace(version=lambda: (2, 28, 9)),
    )
    known = {f"is_{name}_available": lambda: False for name in machine.BACKENDS}
    known |= {"is_available": lambda: True, "is_nccl_available": lambda: True}
    cudnn = SimpleNamespace(is_available=lambda: True, version=lambda: 91002)
    found = {
        "__version__": "2.13.0+cu130",
        "version": SimpleNamespace(cuda="13.0", hip=None),
        "backends": SimpleNamespace(cudnn=cudnn),
        "cuda": cuda,
        "distributed": SimpleNamespace(**known),
        "zeros": torch.zeros,
    }
    return SimpleNamespace(**found | more)


def test_a_build_for_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "import_module", lambda name: fake_torch())
    found = probe_torch()
    assert found["build"] == {"cuda": "13.0", "cudnn": "91002"}
    assert {n for n, v in found["backends"].items() if v is not None} == {"nccl"}
    assert found["backends"]["nccl"] == "2.28.9"
    assert [device.name for device in found["devices"]] == ["NVIDIA H200"] * 2


def test_builds_without_distributed_or_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_numpy() -> None:
        raise RuntimeError("Numpy is not available")

    alone = fake_torch(
        distributed=SimpleNamespace(is_available=lambda: False),
        zeros=lambda n: SimpleNamespace(numpy=no_numpy),
    )
    monkeypatch.setattr(machine, "import_module", lambda name: alone)
    found = probe_torch()
    assert set(found["backends"].values()) == {None}
    assert found["numpy"] is False


def test_the_gpus_of_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (0, 1):
        (tmp_path / f"driver/nvidia/gpus/0000:0{number}:00.0").mkdir(parents=True)
    assert gpus_of_driver(tmp_path) == 2
    listing = tmp_path / "nvidia-smi"
    listing.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA H200 (UUID: GPU-1)'\n")
    listing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert gpus_of_driver(tmp_path / "none") == 1


def test_a_host_as_the_kernel_shows_it(tmp_path: Path) -> None:
    for number in (0, 1):
        (tmp_path / f"sys/devices/system/node/node{number}").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cpu.max").write_text("150000 100000\n")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 2048 kB\nMemAvailable: 1024 kB\nodd\n")
    found = probe_host(tmp_path)
    assert (found["numa_nodes"], found["quota"]) == (2, 1.5)
    assert (found["memory"], found["memory_free"]) == (2 << 20, 1 << 20)
    assert (found["shm"], found["shm_free"]) == (None, None)


def test_a_host_that_shows_nothing(tmp_path: Path) -> None:
    found = probe_host(tmp_path)
    assert (found["numa_nodes"], found["quota"], found["memory"]) == (1, None, None)


@pytest.mark.parametrize(
    ("text", "quota"), [("max 100000", None), ("50000 100000", 0.5), ("", None), ("1 0", None)]
)
def test_quotas_of_control_groups(text: str, quota: float | None) -> None:
    assert cgroup_quota(text) == quota


def test_lines_of_meminfo_that_are_no_sizes_are_left_out() -> None:
    assert meminfo("HugePages_Total:       0\nMemFree: 3 kB\n") == {"MemFree": 3072}


def test_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str, port: None) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(machine.socket, "getaddrinfo", unknown)
    found = look_up("no-such-host.invalid")
    assert (found.address, found.error) == (None, "[Errno -2] Name or service not known")


def test_a_name_that_nobody_answers_for(monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = threading.Event()

    def late(name: str, port: None) -> None:
        given_up.wait()
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(machine.socket, "getaddrinfo", late)
    found = look_up("slow", patience=0.05)
    given_up.set()
    assert (found.address, found.error) == (None, "no answer within 0.05 s")
    assert found.seconds >= 0.05


def test_a_name_that_is_none() -> None:
    assert look_up("a" * 300 + ".invalid").address is None
