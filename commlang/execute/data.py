"""The initial data of a run: every rank can make every rank's tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.execute.contract_profile import profile_of
from commlang.execute.fill import fill
from commlang.expand.values import take

if TYPE_CHECKING:
    import torch

    from commlang.expand.values import View
    from commlang.plan import Plan


class Data:
    """Tensor parameters of a plan, filled from a seed (see `fill`)."""

    def __init__(self, plan: Plan, seed: int, device: torch.device) -> None:
        program = plan.program()
        self._views: dict[str, View] = program.tensors
        self._profile = profile_of(program)
        self._world = plan.world
        self._seed = seed
        self._device = device

    @property
    def names(self) -> list[str]:
        """The tensor parameters."""
        return list(self._views)

    def initial(self, rank: int, name: str) -> torch.Tensor:
        """What a tensor of a rank holds before the run."""
        view = take(self._views[name], rank)
        return fill(
            name,
            view.dtype,
            view.shape,
            rank=rank,
            world=self._world,
            seed=self._seed,
            profile=self._profile,
            device=self._device,
        )
