"""The backend under a name of its own, since `mpi` is torch's, for any program to use.

    commlang.register_mpi()
    dist.init_process_group("commlang_mpi", init_method="mpi://")

Nothing here imports mpi4py, whose import starts MPI, until the first group is made.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch.distributed as dist
from torch.distributed.rendezvous import register_rendezvous_handler  # pyright: ignore[reportUnknownVariableType]

from commlang.errors import UsageError
from commlang.execute.mpi.found import MISSING, refuse_alone
from commlang.execute.settings import MPI

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = MPI
"""The backend's name for `init_process_group` and `new_group`."""

SCHEME = "mpi"
"""`mpi://` as init_method: rank, world size and store come from MPI itself."""


def register_mpi() -> str:
    """Make the backend `commlang_mpi` and `init_method="mpi://"` known to torch; returns the name.

    The backend moves tensors of the CPU between ranks that mpirun or srun started. Calling this
    again does nothing. Raises UsageError where mpi4py is not installed.
    """
    if find_spec("mpi4py") is None:
        raise UsageError(MISSING)
    if NAME not in dist.Backend.backend_list:
        _dist: Any = dist  # the type of a backend's maker is not told
        _dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu"])
        register_rendezvous_handler(SCHEME, _meet)
    return NAME


def _create(options: Any, backend_options: Any) -> dist.ProcessGroup:
    del backend_options
    refuse_alone(options.group_rank, options.group_size)
    from commlang.execute.mpi.group import create

    return create(options)


def _meet(url: str, **options: Any) -> Iterator[Any]:
    """torch's form of a rendezvous: a generator of (store, rank, world size)."""
    del url, options
    from commlang.execute.mpi.library import world
    from commlang.execute.mpi.meeting import open_store

    store, everyone = open_store(), world()
    yield store, everyone.rank, everyone.size
    raise RuntimeError("ranks of MPI cannot come and go")
