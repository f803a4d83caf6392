"""How to run a plan: plain data, so that the launcher need not import torch for it."""

from __future__ import annotations

from pathlib import Path

from commlang.records import record

MPI = "commlang_mpi"
"""The backend over mpi4py that `commlang.execute.mpi` registers, for a torch without MPI."""


@record
class Settings:
    """The options of a run by their names; `timeout` is in seconds without progress."""

    backend: str = "auto"
    device: str = "auto"
    timeout: float = 60.0
    iterations: int = 5
    warmup: int = 1
    seed: int = 0
    externs: tuple[tuple[str, str], ...] = ()
    trace: str | None = None
    """Where to write a trace."""
    predict: str | None = None
    """The machine on which the run is simulated, too."""

    @property
    def wants_mpi(self) -> bool:
        """Whether MPI's own launcher has to start the ranks."""
        return self.backend in ("mpi", MPI)

    @property
    def wants_cuda(self) -> bool:
        """Whether ranks take CUDA devices if there are enough of them."""
        undecided = self.device == "auto" and self.backend == "auto"
        return undecided or self.device.startswith("cuda") or "nccl" in self.backend

    def may_use_cuda(self, ranks: int) -> bool:
        """Whether that many ranks on this node may come to use CUDA, told without torch."""
        decided = self.device != "auto" or self.backend != "auto"
        devices = len(list(Path("/dev").glob("nvidia[0-9]*")))
        return self.wants_cuda and (decided or devices >= ranks)


@record
class BenchSettings(Settings):
    """The same of `commlang bench`; with `check`, each plan's first run is checked.

    `aggregate` runs follow one another between two looks at the clock; `cycles` repeat it all.
    """

    check: int = 1
    cycles: int = 1
    aggregate: int = 1


@record
class TuneSettings(Settings):
    """The same of `commlang tune`: `calls` follow one another in each of `rounds` turns."""

    rounds: int = 24
    calls: int = 4
