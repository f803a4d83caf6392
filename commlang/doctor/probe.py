"""What was found out about a machine, as plain data."""

from __future__ import annotations

from dataclasses import field

from commlang.records import record

PREFIXES = ("NCCL_", "TORCH_", "GLOO_", "TORCHELASTIC_", "PYTORCH_")
NAMES = (
    "MASTER_ADDR",
    "MASTER_PORT",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_DEVICE_MAX_CONNECTIONS",
)
"""The environment variables that decide how ranks meet and move data."""


def matters(name: str) -> bool:
    """Whether an environment variable is one of those that matter here."""
    return name in NAMES or name.startswith(PREFIXES)


@record
class Device:
    """A GPU as torch sees it; `memory` is in bytes."""

    name: str
    memory: int


@record
class Lookup:
    """A host name looked up: its address, or why there is none, and how long that took, in s."""

    name: str
    address: str | None
    seconds: float
    error: str = ""


@record
class Probe:
    """What one machine says; None or empty where it says nothing or was not asked.

    Sizes are in bytes. `torch` is None if it cannot be imported, for `torch_error`. `backends`
    has each backend of torch.distributed with its version, "" if it has none to tell and None if
    torch is built without it. `gpus_seen` counts the GPUs that the driver lists, whatever torch
    sees. `cores` are those this process may use, `quota` the CPUs that its control group grants.
    `links`, `infiniband` and `network` are as in `commlang.execute.topology.Topology`;
    `interfaces` are the names of all network interfaces. `limits` are the soft ones, by name, -1
    for none. `numpy` is whether a tensor can become an array.
    """

    host: str
    python: str
    torch: str | None
    torch_error: str = ""
    build: dict[str, str] = field(default_factory=dict[str, str])
    backends: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    mpi4py: str | None = None
    numpy: bool = True
    devices: tuple[Device, ...] = ()
    gpus_seen: int = 0
    links: dict[str, int] = field(default_factory=dict[str, int])
    infiniband: tuple[str, ...] = ()
    network: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()
    cores: int = 1
    quota: float | None = None
    numa_nodes: int = 1
    memory: int | None = None
    memory_free: int | None = None
    shm: int | None = None
    shm_free: int | None = None
    limits: dict[str, int] = field(default_factory=dict[str, int])
    variables: dict[str, str] = field(default_factory=dict[str, str])
    own_name: Lookup | None = None
    master: Lookup | None = None
