"""What this machine offers to torch.distributed, looked at without starting a rank."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import threading
import time
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commlang.doctor.probe import Device, Lookup, Probe, matters
from commlang.execute import topology

if TYPE_CHECKING:
    from collections.abc import Mapping

PATIENCE_S = 10.0
LIMITS = {"nofile": "RLIMIT_NOFILE", "memlock": "RLIMIT_MEMLOCK", "nproc": "RLIMIT_NPROC"}
BACKENDS = ("gloo", "nccl", "mpi", "ucc", "xccl")


def probe_machine(environ: Mapping[str, str]) -> Probe:
    """Look at everything; takes what `import torch` does, and 10 s for each name at most."""
    host = platform.node() or socket.gethostname()
    master = environ.get("MASTER_ADDR")
    found = probe_torch()
    gpus = [device.name for device in found.get("devices", ())]
    links = topology.probe(host, gpus)
    return Probe(
        host,
        platform.python_version(),
        **found,
        mpi4py=_version("mpi4py"),
        gpus_seen=gpus_of_driver(),
        links=links.links,
        infiniband=tuple(links.infiniband),
        network=tuple(links.network),
        interfaces=tuple(name for _, name in socket.if_nameindex()),
        **probe_host(),
        variables={name: environ[name] for name in sorted(environ) if matters(name)},
        own_name=look_up(host),
        master=look_up(master) if master else None,
    )


# ------------------------------------------------------------------ torch


def probe_torch() -> dict[str, Any]:
    """Torch, its build, backends and devices, by the names of a Probe's fields."""
    try:
        torch = import_module("torch")
    except Exception as error:  # a broken build raises whatever its libraries do
        return {"torch": None, "torch_error": _one_line(error)}
    return {
        "torch": torch.__version__,
        "build": _build(torch),
        "backends": _backends(torch),
        "numpy": _has_numpy(torch),
        "devices": _devices(torch),
    }


def _build(torch: Any) -> dict[str, str]:
    cudnn = torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None
    known = {"cuda": torch.version.cuda, "hip": torch.version.hip, "cudnn": cudnn}
    return {name: str(value) for name, value in known.items() if value}


def _backends(torch: Any) -> dict[str, str | None]:
    if not torch.distributed.is_available():
        return dict.fromkeys(BACKENDS)
    there = {n: getattr(torch.distributed, f"is_{n}_available", bool)() for n in BACKENDS}
    return {name: _backend_version(torch, name) if there[name] else None for name in BACKENDS}


def _backend_version(torch: Any, name: str) -> str:
    if name != "nccl":
        return ""
    with suppress(Exception):
        return ".".join(map(str, torch.cuda.nccl.version()))
    return ""


def _has_numpy(torch: Any) -> bool:
    try:
        torch.zeros(1).numpy()
    except Exception:  # numpy is not there, or of a release for which torch is not built
        return False
    return True


def _devices(torch: Any) -> tuple[Device, ...]:
    with suppress(Exception):
        count = torch.cuda.device_count()
        known = [torch.cuda.get_device_properties(index) for index in range(count)]
        return tuple(Device(found.name, found.total_memory) for found in known)
    return ()


def gpus_of_driver(proc: Path = Path("/proc")) -> int:
    """How many GPUs NVIDIA's driver lists, whatever torch and CUDA_VISIBLE_DEVICES say."""
    listed = len(list(proc.glob("driver/nvidia/gpus/*")))
    if listed or not shutil.which("nvidia-smi"):
        return listed
    with suppress(OSError, subprocess.SubprocessError):
        command = ["nvidia-smi", "-L"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
        return sum(line.startswith("GPU ") for line in done.stdout.splitlines())
    return 0


# ------------------------------------------------------------------- host


def probe_host(root: Path = Path("/")) -> dict[str, Any]:
    """Cores, memory and limits, by the names of a Probe's fields."""
    memory = meminfo(_text(root / "proc/meminfo"))
    shm = _disk(root / "dev/shm")
    nodes = len(list((root / "sys/devices/system/node").glob("node[0-9]*")))
    return {
        "cores": _cores(),
        "quota": cgroup_quota(_text(root / "sys/fs/cgroup/cpu.max")),
        "numa_nodes": max(1, nodes),
        "memory": memory.get("MemTotal"),
        "memory_free": memory.get("MemAvailable"),
        "shm": shm.total if shm else None,
        "shm_free": shm.free if shm else None,
        "limits": _limits(),
    }


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def meminfo(text: str) -> dict[str, int]:
    """The bytes of each line `MemTotal: 16384 kB` of /proc/meminfo."""
    rows = [line.split() for line in text.splitlines()]
    return {
        row[0].rstrip(":"): int(row[1]) * 1024
        for row in rows
        if len(row) == 3 and row[1].isdecimal() and row[2] == "kB"
    }


def cgroup_quota(text: str) -> float | None:
    """The CPUs that `cpu.max` grants, `max 100000` for no limit or `150000 100000` for 1.5."""
    quota, _, period = text.partition(" ")
    if not (quota.isdecimal() and period.isdecimal() and int(period)):
        return None
    return int(quota) / int(period)


def _disk(path: Path) -> Any:
    try:
        return shutil.disk_usage(path)
    except OSError:
        return None


def _limits() -> dict[str, int]:
    try:
        import resource
    except ImportError:  # Windows
        return {}
    found: dict[str, int] = {}
    for name, constant in LIMITS.items():
        if hasattr(resource, constant):
            soft, _ = resource.getrlimit(getattr(resource, constant))
            found[name] = -1 if soft == resource.RLIM_INFINITY else soft
    return found


# ------------------------------------------------------------------ names


def look_up(name: str, patience: float = PATIENCE_S) -> Lookup:
    """The address of a name; one that does not answer in time has none."""
    answer: list[tuple[str | None, str]] = []

    def ask() -> None:
        try:
            answer.append((str(socket.getaddrinfo(name, None)[0][4][0]), ""))
        except (OSError, UnicodeError) as error:
            answer.append((None, _one_line(error)))

    began = time.monotonic()
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(patience)
    address, error = answer[0] if answer else (None, f"no answer within {patience:g} s")
    return Lookup(name, address, time.monotonic() - began, error)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _one_line(error: BaseException) -> str:
    text = str(error).strip().partition("\n")[0]
    return text or type(error).__name__
