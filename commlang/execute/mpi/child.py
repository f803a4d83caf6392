"""What each process runs that mpirun starts for commlang: `python -m …child RUN_DIR`."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

from commlang.execute.child import Job, main
from commlang.execute.mpi.launch import JOB_FILE, SAID_FILE, result_file


def _rank(*arguments: Any) -> None:
    """The job's entry, with its result written down before MPI ends."""
    context, run_dir, entry, given = arguments
    if context.info.rank == 0:
        said = (run_dir / SAID_FILE).open("a", buffering=1, errors="backslashreplace")
        sys.stderr = said
    result = entry(context, *given)
    result_file(run_dir, context.info.rank).write_bytes(pickle.dumps(result))


def run(run_dir: Path) -> None:
    """Be a rank of the job that is described in the run's directory."""
    entry, args, timeout, launcher = pickle.loads((run_dir / JOB_FILE).read_bytes())
    main(Job(_rank, (run_dir, entry, args), run_dir, launcher, timeout, blind=True))


if __name__ == "__main__":
    run(Path(sys.argv[1]))
