"""DR0: torch, its backends, and the devices that they are for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.doctor import sources
from commlang.doctor.advice import Rule, Said, Severity

if TYPE_CHECKING:
    from commlang.doctor.probe import Probe

FAR = ("PHB", "NODE", "SYS")
"""Links over the host bridge or between NUMA nodes, in the words of `nvidia-smi topo -m`."""


def no_torch(probe: Probe) -> Said | None:
    if probe.torch is not None:
        return None
    why = "no rank can run; checking and exporting patterns work all the same"
    return Said(
        f"torch cannot be imported: {probe.torch_error}", why, "install torch 2.13 or newer"
    )


def no_distributed(probe: Probe) -> Said | None:
    if probe.torch is None or any(version is not None for version in probe.backends.values()):
        return None
    fact = f"torch {probe.torch} is built without torch.distributed"
    return Said(fact, "there is no backend at all", "install an ordinary wheel of torch for Linux")


def gpus_torch_does_not_see(probe: Probe) -> Said | None:
    hidden = "CUDA_VISIBLE_DEVICES" in probe.variables
    if probe.torch is None or probe.devices or not probe.gpus_seen or hidden:
        return None
    if probe.build.get("cuda") or probe.build.get("hip"):
        todo = "see what `nvidia-smi` says; the driver may be too old for this build of torch"
    else:
        todo = "install a build of torch for CUDA"
    fact = f"the driver lists {_gpus(probe.gpus_seen)}, of which torch {probe.torch} sees none"
    return Said(fact, "all ranks would compute on the CPU", todo)


def no_nccl(probe: Probe) -> Said | None:
    if not probe.devices or probe.backends.get("nccl") is not None:
        return None
    why = "gloo copies each tensor of a GPU through the host's memory, several times slower"
    return Said("there are GPUs, and torch has no nccl", why, "install a build of torch with nccl")


def use_nccl(probe: Probe) -> Said | None:
    if not probe.devices or probe.backends.get("nccl") is None:
        return None
    fact = f"torch sees {_gpus(len(probe.devices))} and has nccl {probe.backends['nccl']}"
    why = "it is the fastest for tensors on GPUs, and goes over NVLink and GPUDirect"
    todo = 'use init_process_group("cpu:gloo,cuda:nccl", device_id=…), or `--backend nccl`'
    return Said(fact, why, todo)


def use_mpi(probe: Probe) -> Said | None:
    if probe.devices or not probe.infiniband or probe.torch is None:
        return None
    fact = f"there are no GPUs, but InfiniBand: {probe.infiniband[0]}"
    why = "gloo reaches it only by IP over InfiniBand"
    there = probe.mpi4py is not None or probe.backends.get("mpi") is not None
    todo = "try `--backend mpi`" if there else "try `--backend mpi`: pip install 'commlang[mpi]'"
    return Said(fact, why, todo)


def no_numpy(probe: Probe) -> Said | None:
    if probe.numpy or probe.torch is None:
        return None
    fact = "torch cannot turn a tensor into a numpy array"
    why = "collectives of objects (all_gather_object, broadcast_object_list) need that"
    return Said(fact, why, "install numpy 2, which this build of torch is made for")


def far_gpus(probe: Probe) -> Said | None:
    far = [kind for kind in FAR if kind in probe.links]
    if not far:
        return None
    counts = ", ".join(f"{probe.links[kind]} by {kind}" for kind in far)
    fact = f"pairs of GPUs are linked over the CPU's bridges: {counts}"
    why = "what goes between them shares PCIe with all else, and is slowest between NUMA nodes"
    todo = "keep groups that talk much within NVLink or a switch, and order ranks accordingly"
    return Said(fact, why, todo)


def _gpus(number: int) -> str:
    return "1 GPU" if number == 1 else f"{number} GPUs"


RULES = (
    Rule("DR001", Severity.BROKEN, sources.INSTALL, no_torch),
    Rule("DR002", Severity.BROKEN, sources.DISTRIBUTED, no_distributed),
    Rule("DR003", Severity.BROKEN, sources.INSTALL, gpus_torch_does_not_see),
    Rule("DR004", Severity.WARNING, sources.BACKENDS, no_nccl),
    Rule("DR005", Severity.ADVICE, sources.BACKENDS, use_nccl),
    Rule("DR006", Severity.ADVICE, sources.BACKENDS, use_mpi),
    Rule("DR007", Severity.BROKEN, sources.OBJECTS, no_numpy),
    Rule("DR008", Severity.ADVICE, sources.NCCL_ENV, far_gpus),
)
