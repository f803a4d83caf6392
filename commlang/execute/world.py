"""Joining the ranks' process group, and leaving it again if it was made here."""

from __future__ import annotations

import contextlib
import os
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import torch
import torch.distributed as dist

from commlang.errors import UsageError
from commlang.execute.mpi.found import refuse_alone
from commlang.execute.reach import join_store, serve_store
from commlang.execute.settings import MPI
from commlang.execute.stores import FileStore, HashStore, PrefixStore
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Generator

    from commlang.execute.environment import RankInfo
    from commlang.execute.stores import Store

# The watchdog decides when a wait has been too long, since only it sees whether others still move.
NEVER = timedelta(days=1)

_NOT_BUILT = {
    "nccl": "Install a CUDA build of torch, or run on CPUs with --backend gloo.",
    "ucc": "It needs torch built from source with UCC; use gloo or nccl.",
    "xccl": "Install an XPU build of torch, or run on CPUs with --backend gloo.",
    "gloo": "Install a build of torch with gloo, as the ordinary wheels are.",
}


@record
class World:
    """The group of all ranks. `timeout` is its own; give it to `new_group`, which inherits none."""

    rank: int
    world_size: int
    local_rank: int
    device: torch.device
    backend: str
    timeout: timedelta
    store: Store
    made_here: bool


def choose_device(device: str, local_rank: int) -> torch.device:
    """`cpu`, `cuda` (this rank's own), `cuda:1` or `auto`: CUDA where there is one per local rank.

    Raises UsageError if the device is unknown or not there.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.device_count() > local_rank else "cpu"
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise UsageError(f"unknown device {device!r}; write cpu, cuda or cuda:<index>") from error
    if chosen.type != "cuda":
        return chosen
    index = chosen.index if ":" in device else local_rank
    if index >= torch.cuda.device_count():
        raise UsageError(
            f"local rank {local_rank} needs cuda:{index}, but torch sees "
            f"{torch.cuda.device_count()} CUDA devices; "
            "start fewer ranks a node, or use --device cpu"
        )
    return torch.device("cuda", index)


def choose_backend(backend: str, device: torch.device) -> str:
    """The backend by torch's name, or one for each device: `cpu:gloo,cuda:nccl`.

    `auto` is gloo for CPU tensors and nccl for those on CUDA devices; `mpi` is the MPI that torch
    was built with, or else `commlang_mpi`. Raises UsageError for what is not there.
    """
    if backend == "auto":
        backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    backend = backend.lower()
    if backend in ("mpi", MPI):
        return _choose_mpi(device)
    for part in backend.split(","):
        name = part.rpartition(":")[2].strip()
        if name in ("mpi", MPI) and not dist.is_mpi_available():
            raise UsageError(f"backend {backend!r}: MPI moves all tensors; write mpi alone")
        # Whether torch has such a backend is asked first: it also knows those of plug-ins.
        if name not in dist.Backend.backend_list or name == dist.Backend.UNDEFINED:
            raise UsageError(f"unknown backend {name!r}; write gloo, nccl, mpi or auto")
        if not dist.is_backend_available(name):
            hint = _NOT_BUILT.get(name, "Use gloo or nccl.")
            raise UsageError(f"torch {torch.__version__} is built without {name}. {hint}")
    return backend


def _choose_mpi(device: torch.device) -> str:
    """The MPI that torch was built with, else the one over mpi4py."""
    if dist.is_mpi_available():
        return "mpi"
    from commlang.execute.mpi.registry import register_mpi

    if device.type != "cpu":
        raise UsageError(f"MPI moves tensors of the CPU, not of {device}; use --device cpu")
    return register_mpi()


def open_store(info: RankInfo, timeout: float, init_method: str = "env://") -> Store:
    """The store in which the ranks meet; rank 0 serves it, unless torchrun's agent does already.

    `init_method` is `env://` (the place that `info` holds), `tcp://host:port`, `file:///path` or
    `mpi://` (a place that ranks of MPI agree on). Raises UsageError for another, and CommlangError
    if rank 0 does not answer within `timeout` seconds.
    """
    url = urlsplit(init_method)
    if url.scheme == "file" and url.path:
        return FileStore(url.path, info.world_size)
    if url.scheme == "tcp" and url.hostname and url.port:
        return _tcp_store(info, url.hostname, url.port, timeout, served=False)
    if url.scheme == "mpi":
        refuse_alone(info.rank, info.world_size)
        from commlang.execute.mpi.meeting import open_store_of

        return open_store_of(info, timeout)
    if url.scheme != "env":
        raise UsageError(
            f"init method {init_method!r}: write env://, tcp://host:port, file:///path or mpi://"
        )
    if info.master_addr is None or info.master_port is None:
        raise UsageError("MASTER_ADDR and MASTER_PORT are not set; the ranks have no place to meet")
    served = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    return _tcp_store(info, info.master_addr, info.master_port, timeout, served)


def _tcp_store(info: RankInfo, host: str, port: int, timeout: float, served: bool) -> Store:
    serves = info.rank == 0 and not served
    return (serve_store if serves else join_store)(info, host, port, timeout)


@contextlib.contextmanager
def join(
    info: RankInfo,
    *,
    store: Store | None = None,
    init_method: str = "env://",
    backend: str = "auto",
    device: str = "auto",
    timeout: timedelta = NEVER,
    rendezvous_timeout: float = 60.0,
) -> Generator[World]:
    """Initialise torch.distributed for this rank, and undo that at the end.

    A default group that exists already is used as it is and left alone. `timeout` is how long torch
    lets one operation wait, `rendezvous_timeout` how many seconds rank 0 may take to answer. With
    nccl the communicator is made at once (`device_id`), so that p2p needs no lazy pair set-up.

    Raises UsageError for a backend or device that is not there, and CommlangError if the ranks do
    not meet.
    """
    if device == "auto" and backend in ("mpi", MPI):
        device = "cpu"
    chosen = choose_device(device, info.local_rank)
    name = choose_backend(backend, chosen)
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    made_here = not dist.is_initialized()
    if made_here:
        store = store or open_store(info, rendezvous_timeout, init_method)
        _initialise(info, store, name, chosen, timeout)
    else:
        _check_same_place(info)
        store = store or HashStore()
    try:
        yield World(
            rank=info.rank,
            world_size=info.world_size,
            local_rank=info.local_rank,
            device=chosen,
            backend=name,
            timeout=timeout,
            store=store,
            made_here=made_here,
        )
    finally:
        if made_here and dist.is_initialized():
            dist.destroy_process_group()


def _initialise(
    info: RankInfo, store: Store, backend: str, device: torch.device, timeout: timedelta
) -> None:
    eager = device if "nccl" in backend and device.type == "cuda" else None
    store.set_timeout(timeout)
    dist.init_process_group(
        backend,
        store=PrefixStore("commlang/world", store),
        rank=info.rank,
        world_size=info.world_size,
        timeout=timeout,
        device_id=eager,
    )


def _check_same_place(info: RankInfo) -> None:
    place = dist.get_rank(), dist.get_world_size()
    if place != (info.rank, info.world_size):
        raise UsageError(
            f"the process group that exists already calls this rank {place[0]} of {place[1]}, but "
            f"its environment says rank {info.rank} of {info.world_size}"
        )
