"""One training step as torch does it on gloo: what it says to the other ranks, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch._dynamo  # which DDP imports at its first use; here, it does so once for all cases
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES = {
    "allreduce_": "all_reduce",
    "broadcast_": "broadcast",
    "allgather_": "all_gather",
    "_allgather_base_": "all_gather_into_tensor",
    "_reduce_scatter_base_": "reduce_scatter_tensor",
}


class Recorder(TorchDispatchMode):
    """Notes each collective with the number of elements of its largest tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func.namespace == "c10d":
            sizes = [leaf.numel() for leaf in tree_leaves(args) if isinstance(leaf, torch.Tensor)]
            name = func.name().removeprefix("c10d::")
            self.said.append(f"{_NAMES.get(name, name)} {max(sizes)}")
        return func(*args, **(kwargs or {}))

    def take(self, phase: str) -> str:
        """What was said since the last call, as a line."""
        line = f"{phase}: {', '.join(self.said) or 'nothing'}"
        self.said = []
        return line


def model(*, norm: bool = False) -> torch.nn.Module:
    """Three layers, optionally with a batch norm, which has buffers."""
    layers = [torch.nn.Linear(512, 1024), torch.nn.Linear(1024, 1024), torch.nn.Linear(1024, 512)]
    return torch.nn.Sequential(*layers, *([torch.nn.BatchNorm1d(512)] if norm else []))


def ddp(*, norm: bool = False, view: bool = False) -> list[str]:
    """Building the wrapper and two steps."""
    recorder = Recorder()
    with recorder:
        wrapped = DistributedDataParallel(model(norm=norm), gradient_as_bucket_view=view)
    return [recorder.take("building"), *_steps(recorder, wrapped, 512, 2)]


def ddp_gradients(*, view: bool) -> dict[str, float]:
    """The largest difference of DDP's gradients from the mean over ranks, and that of the mean from
    this rank's own gradients; and how many storages hold DDP's.
    """
    wrapped = DistributedDataParallel(model(), gradient_as_bucket_view=view)
    for _ in _steps(Recorder(), wrapped, 512, 2):
        pass
    gradients = [p.grad for p in wrapped.parameters() if p.grad is not None]
    alone = model()
    alone.load_state_dict(wrapped.module.state_dict())
    alone(_batch(512)).sum().backward()
    from_mean = from_own = 0.0
    for theirs, own in zip(gradients, alone.parameters(), strict=True):
        assert own.grad is not None
        mean = own.grad.clone()
        dist.all_reduce(mean)
        mean /= dist.get_world_size()
        from_mean = max(from_mean, float((theirs - mean).abs().max()))
        from_own = max(from_own, float((mean - own.grad).abs().max()))
    storages = len({g.untyped_storage().data_ptr() for g in gradients})
    return {"from_mean": from_mean, "from_own": from_own, "storages": storages}


def fsdp() -> list[str]:
    """One step of three layers, each sharded."""
    net = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(3)])
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for module in (*net, net):
        fully_shard(module, mesh=mesh)
    return list(_steps(Recorder(), net, 64, 1))


def _steps(recorder: Recorder, net: torch.nn.Module, width: int, steps: int) -> Iterator[str]:
    for _ in range(steps):
        net.zero_grad()
        with recorder:
            loss = net(_batch(width)).sum()
        yield recorder.take("forward")
        with recorder:
            loss.backward()
        yield recorder.take("backward")


def _batch(width: int) -> torch.Tensor:
    """Other data on each rank."""
    return torch.full((4, width), dist.get_rank() + 1.0)
