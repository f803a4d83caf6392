"""What of MPI is installed, told without starting it or importing torch."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from commlang.errors import UsageError

MISSING = (
    "MPI needs mpi4py and an MPI that it loads: `pip install 'commlang[mpi]'` brings both, and "
    "`pip install mpi4py` is enough where there is an MPI"
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
