"""What of MPI is installed, told without starting it or importing torch."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from commlang.errors import UsageError

MISSING = (
    "MPI needs mpi4py and an MPI that it loads: `pip install 'commlang[mpi]'` brings both, and "
    "`pip install mpi4py` is enough where there is an MPI"
)


_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
"""One of these is set for a process that a launcher of MPI has started."""


def refuse_alone(rank: int, size: int) -> None:
    """Raise UsageError for a rank of several that no launcher of MPI has started.

    A lone process that starts MPI and then fails would leave its shared memory behind.
    """
    if size > 1 and not any(name in os.environ for name in _RANK_VARIABLES):
        raise UsageError(differs(0, 1, rank, size))


def differs(rank: int, size: int, told: int, told_size: int) -> str:
    """That MPI says another place of this rank than it is told."""
    return (
        f"MPI calls this rank {rank} of {size}, but its environment says rank {told} of "
        f"{told_size}; start the ranks with `mpirun -n {told_size}`"
    )


def find_mpirun() -> str:
    """The path of the launcher; that of an MPI installed beside this Python comes first.

    Raises UsageError if neither torch nor mpi4py brings MPI, or there is no launcher.
    """
    if find_spec("mpi4py") is None and not _torch_has_mpi():
        raise UsageError(MISSING)
    here = str(Path(sys.executable).parent)
    for name in ("mpirun", "mpiexec"):
        if found := shutil.which(name, path=here) or shutil.which(name):
            return found
    raise UsageError(
        "MPI's launcher `mpirun` is not there, neither beside this Python nor on PATH: "
        "`pip install 'commlang[mpi]'` brings one"
    )


def _torch_has_mpi() -> bool:
    import torch.distributed as dist

    return dist.is_mpi_available()
