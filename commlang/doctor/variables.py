"""DR3: environment variables that slow ranks down, keep them apart, or do not fit together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.doctor import sources
from commlang.doctor.advice import Rule, Said, Severity

if TYPE_CHECKING:
    from commlang.doctor.probe import Probe

NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
LEFT_FROM_DEBUGGING = ("NCCL_ALGO", "NCCL_PROTO", "NCCL_NTHREADS", "NCCL_CHECKS_DISABLE")


def _on(probe: Probe, name: str) -> bool:
    """Whether a switch is set: NCCL and torch read 0 as off."""
    return probe.variables.get(name, "").strip().lower() not in ("", "0", "false", "no", "n", "off")


def _switch(name: str, why: str, todo: str) -> Said:
    return Said(f"{name} is set", why, todo)


def peers_disabled(probe: Probe) -> Said | None:
    if not _on(probe, "NCCL_P2P_DISABLE"):
        return None
    why = "GPUs of a host then talk over its memory, not over NVLink or PCIe directly"
    return _switch("NCCL_P2P_DISABLE", why, "unset it, unless the host hangs without")


def infiniband_disabled(probe: Probe) -> Said | None:
    if not _on(probe, "NCCL_IB_DISABLE"):
        return None
    why = "NCCL then goes over TCP between hosts"
    if probe.infiniband:
        why += f", though there is {probe.infiniband[0]}"
    return _switch("NCCL_IB_DISABLE", why, "unset it")


def shm_disabled(probe: Probe) -> Said | None:
    if not _on(probe, "NCCL_SHM_DISABLE"):
        return None
    why = "GPUs of a host without a direct link then talk over the network"
    return _switch("NCCL_SHM_DISABLE", why, "unset it, and make /dev/shm large enough")


def detailed_debugging(probe: Probe) -> Said | None:
    if probe.variables.get("TORCH_DISTRIBUTED_DEBUG", "").upper() != "DETAIL":
        return None
    why = "each collective is then preceded by another that compares the ranks' arguments"
    return Said("TORCH_DISTRIBUTED_DEBUG is DETAIL", why, "keep it for the search of a fault")


def launches_block(probe: Probe) -> Said | None:
    if not _on(probe, "CUDA_LAUNCH_BLOCKING"):
        return None
    why = "the host waits for each kernel, so that nothing overlaps, communication included"
    return _switch("CUDA_LAUNCH_BLOCKING", why, "keep it for the search of a fault")


def waits_block(probe: Probe) -> Said | None:
    names = ("TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT")
    name = next((name for name in names if _on(probe, name)), None)
    if name is None:
        return None
    why = "wait() then stops the host until the GPU is done, where it would issue the next kernel"
    return _switch(name, why, "unset it: torch ends a rank whose collective times out without it")


def errors_unhandled(probe: Probe) -> Said | None:
    names = ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING")
    name = next((name for name in names if probe.variables.get(name) == "0"), None)
    if name is None:
        return None
    why = "a rank whose collective failed or timed out then goes on with wrong data, or hangs"
    return Said(f"{name} is 0", why, "unset it")


def nccl_talks(probe: Probe) -> Said | None:
    level = probe.variables.get("NCCL_DEBUG", "").upper()
    if level not in ("INFO", "TRACE", "ABORT"):
        return None
    why = "every rank writes lines for each communicator, with TRACE for each call"
    return Said(f"NCCL_DEBUG is {level}", why, "NCCL_DEBUG=WARN tells of faults only")


def tuned_by_hand(probe: Probe) -> Said | None:
    names = [name for name in LEFT_FROM_DEBUGGING if name in probe.variables]
    if not names:
        return None
    why = "NCCL chooses by size and topology, and its manual says not to keep such settings"
    return Said(f"set by hand: {', '.join(names)}", why, "unset, measure, and set what still pays")


def threads_not_said(probe: Probe) -> Said | None:
    if "OMP_NUM_THREADS" in probe.variables or probe.cores < 2 or probe.torch is None:
        return None
    fact = f"OMP_NUM_THREADS is not set, and there are {probe.cores} cores"
    why = (
        "ranks started by hand take all cores each, and slow one another down; torchrun and "
        "commlang set it to 1"
    )
    return Said(fact, why, f"set it to {probe.cores} / ranks of this host")


def too_many_threads(probe: Probe) -> Said | None:
    text = probe.variables.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    ranks = probe.variables.get("LOCAL_WORLD_SIZE", "1").strip()
    if not (_number(text) and _number(ranks)) or int(text) * int(ranks) <= probe.cores:
        return None
    here = f" for each of {int(ranks)} ranks" if int(ranks) > 1 else ""
    fact = f"OMP_NUM_THREADS is {text}{here}, and there are {probe.cores} cores"
    why = "threads that wait for a core keep those that have one waiting at each barrier"
    return Said(fact, why, f"set it to {max(1, probe.cores // int(ranks))}")


def threads_not_a_number(probe: Probe) -> Said | None:
    text = probe.variables.get("OMP_NUM_THREADS", "").strip()
    if not text or all(_number(part.strip()) for part in text.split(",")):
        return None
    fact = f"OMP_NUM_THREADS is {text!r}, which is no number of threads"
    why = "OpenMP then takes all cores for each rank, and says so on standard error at most"
    return Said(fact, why, "set it to cores / ranks of this host, a number from 1 up")


def no_such_card(probe: Probe) -> Said | None:
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        asked = probe.variables.get(name, "")
        if asked and probe.interfaces and not _fits(name, asked, probe.interfaces):
            fact = f"{name} is {asked}, and no network interface is called so"
            todo = f"there are {', '.join(probe.interfaces)}"
            return Said(fact, "no group can be made", todo)
    return None


def _fits(name: str, asked: str, interfaces: tuple[str, ...]) -> bool:
    """As gloo reads it: a list of names, all of which it needs; NCCL: of prefixes, `=` for whole
    names and `^` for all others."""
    if name.startswith("GLOO"):
        return all(part.strip() in interfaces for part in asked.split(","))
    text = asked.removeprefix("^")
    exact, parts = text.startswith("="), text.removeprefix("=").split(",")
    chosen = [
        card
        for card in interfaces
        if any(card == part if exact else card.startswith(part) for part in parts)
    ]
    return len(chosen) < len(interfaces) if asked.startswith("^") else bool(chosen)


def half_a_world(probe: Probe) -> Said | None:
    there = [name for name in NEEDED if name in probe.variables]
    missing = [name for name in NEEDED if name not in probe.variables]
    ranked = {"RANK", "WORLD_SIZE"} & set(there)
    if not ranked or not missing:
        return None
    fact = f"{', '.join(there)} {'are' if len(there) > 1 else 'is'} set, {', '.join(missing)} not"
    why = 'init_method="env://" needs all four'
    return Said(fact, why, "start ranks by a launcher, or unset what an earlier job has left")


def no_gpus_visible(probe: Probe) -> Said | None:
    visible = probe.variables.get("CUDA_VISIBLE_DEVICES")
    if visible is None or not probe.gpus_seen or len(probe.devices) == probe.gpus_seen:
        return None
    fact = f"CUDA_VISIBLE_DEVICES is {visible!r}: torch sees {len(probe.devices)} of "
    fact += f"{probe.gpus_seen} GPUs"
    why = "LOCAL_RANK counts the visible ones, and NCCL cannot use NVLink to one that is hidden"
    return Said(fact, why, "let each rank choose by LOCAL_RANK, and unset it where that was meant")


def _number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 0 < int(text) < 1 << 20


RULES = (
    Rule("DR301", Severity.WARNING, sources.NCCL_ENV, peers_disabled),
    Rule("DR302", Severity.WARNING, sources.NCCL_ENV, infiniband_disabled),
    Rule("DR303", Severity.WARNING, sources.NCCL_ENV, shm_disabled),
    Rule("DR304", Severity.WARNING, sources.DEBUGGING, detailed_debugging),
    Rule("DR305", Severity.WARNING, sources.CUDA_ENV, launches_block),
    Rule("DR306", Severity.WARNING, sources.TORCH_NCCL, waits_block),
    Rule("DR307", Severity.WARNING, sources.TORCH_NCCL, errors_unhandled),
    Rule("DR308", Severity.ADVICE, sources.NCCL_ENV, nccl_talks),
    Rule("DR309", Severity.ADVICE, sources.NCCL_ENV, tuned_by_hand),
    Rule("DR310", Severity.ADVICE, sources.TORCHRUN, threads_not_said),
    Rule("DR311", Severity.WARNING, sources.THREADS, too_many_threads),
    Rule("DR312", Severity.BROKEN, sources.INTERFACES, no_such_card),
    Rule("DR313", Severity.WARNING, sources.INITIALISATION, half_a_world),
    Rule("DR314", Severity.ADVICE, sources.TORCH_CUDA, no_gpus_visible),
    Rule("DR315", Severity.WARNING, sources.THREADS, threads_not_a_number),
)
