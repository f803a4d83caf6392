"""Where a program is to run, as far as a verdict depends on it."""

from __future__ import annotations

from enum import StrEnum

from commlang.records import record
from commlang.version import TORCH


class Backend(StrEnum):
    """The models: `rendezvous` is what every transport honours, the others are backends."""

    RENDEZVOUS = "rendezvous"
    GLOO = "gloo"
    NCCL = "nccl"
    MPI = "mpi"


class NcclInit(StrEnum):
    """When NCCL makes its communicators: at first use, or at once (`device_id=` was given)."""

    LAZY = "lazy"
    EAGER = "eager"


@record
class Target:
    """A backend, or None for whoever has not chosen one yet.

    Without a backend the rendezvous model decides, and what would hang on NCCL only is a warning.
    `device` is that of the tensors, by torch's name; None takes what the backend is made for.
    `ranks_per_node` tells that the world is spread over nodes of so many ranks; None tells nothing.
    """

    backend: Backend | None = None
    nccl_init: NcclInit = NcclInit.LAZY
    device: str | None = None
    ranks_per_node: int | None = None
    torch: str = TORCH

    @property
    def device_type(self) -> str:
        """`cpu` or `cuda`."""
        if self.device is not None:
            return self.device.partition(":")[0]
        return "cuda" if self.backend is Backend.NCCL else "cpu"


PORTABLE = Target()
RENDEZVOUS = Target(Backend.RENDEZVOUS)
