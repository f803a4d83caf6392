"""A process group for a program that has none: met by env, tcp or file, and left again."""

from __future__ import annotations

import contextlib
import os
from datetime import timedelta
from typing import TYPE_CHECKING

import torch.distributed as dist

from commlang.errors import UsageError
from commlang.execute.environment import RankInfo, detect
from commlang.execute.world import join

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from commlang.execute.world import World


@contextlib.contextmanager
def process_group(
    init_method: str = "env://",
    *,
    rank: int | None = None,
    world_size: int | None = None,
    backend: str = "auto",
    device: str = "auto",
    timeout: timedelta = timedelta(minutes=30),
    rendezvous_timeout: float = 60.0,
) -> Generator[World]:
    """Initialise torch.distributed for the `with` block; a group that exists is used and left.

    `init_method` is `env://` (MASTER_ADDR and MASTER_PORT), `tcp://host:port`, `file:///path` (a
    file that does not exist yet) or, for ranks that mpirun started, `mpi://`. Without `rank` and
    `world_size` they are read from what torchrun, srun or mpirun set. `backend` may name one for
    each device, `cpu:gloo,cuda:nccl`; `auto` takes NCCL for CUDA and gloo for the CPU, and `mpi` is
    torch's or `commlang_mpi`. `timeout` is how long one operation may wait (MPI's wait for ever),
    `rendezvous_timeout` how many seconds rank 0 may take to answer.

    Raises UsageError for arguments or an environment that do not say which rank this is, or a
    backend or device that is not there, and CommlangError if the ranks do not meet.
    """
    info = _place(init_method, rank, world_size, os.environ)
    with join(
        info,
        init_method=init_method,
        backend=backend,
        device=device,
        timeout=timeout,
        rendezvous_timeout=rendezvous_timeout,
    ) as world:
        yield world


def _place(
    init_method: str, rank: int | None, world_size: int | None, env: Mapping[str, str]
) -> RankInfo:
    if (rank is None) != (world_size is None):
        raise UsageError("give both rank= and world_size=, or neither")
    if rank is None and dist.is_initialized():
        rank, world_size = dist.get_rank(), dist.get_world_size()
    if rank is None or world_size is None:
        found = detect(env, need_master=init_method == "env://")
        if found is None:
            raise UsageError(
                "this process is no rank: RANK and WORLD_SIZE are not set; start it with torchrun, "
                "srun or mpirun, or give rank= and world_size="
            )
        return found
    if not 0 <= rank < world_size:
        raise UsageError(f"rank={rank} contradicts world_size={world_size}; ranks count from 0")
    return RankInfo(
        rank=rank,
        world_size=world_size,
        local_rank=_number(env, "LOCAL_RANK", rank) or 0,
        local_world_size=None,
        node="",
        master_addr=env.get("MASTER_ADDR"),
        master_port=_number(env, "MASTER_PORT", None),
        source="torchrun",
    )


def _number(env: Mapping[str, str], name: str, default: int | None) -> int | None:
    text = env.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"{name}={text!r} is not a number from 0 up")
    return int(text)
