"""What each rank does in the tests of patterns inside DDP and FSDP2; as in `executor_work`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import commlang
from commlang.errors import CommlangError
from tests.execute.executor_work import joined, said

if TYPE_CHECKING:
    from pathlib import Path

STEPS = 3
_fully_shard: Any = fully_shard  # whose types are not complete


class Mixed(nn.Module):
    """Layers of two dtypes and odd sizes: several buckets, the last one uneven."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Sequential(nn.Linear(7, 33), nn.Tanh(), nn.Linear(33, 65), nn.Tanh())
        self.second: Any = nn.Sequential(nn.Linear(65, 31), nn.Tanh(), nn.Linear(31, 3)).to(
            torch.float64
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).double())


def trained(model: Any, rank: int, steps: int = STEPS) -> list[list[Any]]:
    """Gradients after each step; every rank has data of its own."""
    module = getattr(model, "module", model)
    optimiser = torch.optim.SGD(module.parameters(), lr=0.1)
    data = torch.Generator().manual_seed(rank)
    found: list[list[Any]] = []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = model(torch.randn(5, 7, generator=data)).square().sum()
        loss.backward()
        found.append([_whole(p.grad) for p in module.parameters()])
        optimiser.step()
    return found


def _whole(grad: Any) -> torch.Tensor:
    return (grad.full_tensor() if hasattr(grad, "full_tensor") else grad).clone()


def ddp(rank: int, size: int, path: Path) -> list[Any]:
    """How far the gradients of each pattern are from DDP's own; and how many buckets there were."""
    found: list[Any] = []
    with joined(rank, size, path):
        plain = trained(_ddp(Mixed()), rank)
        by_backend = commlang.loads("pattern f(x: t[n], t = float32):\n    all_reduce(x)\n", "f")
        for pattern in (by_backend, commlang.load("ring_all_reduce")):
            with commlang.ddp_hook(pattern) as hook:
                seen: list[tuple[int, int]] = []
                model = _ddp(Mixed())

                def noted(state: object, bucket: Any, hook: Any = hook, seen: Any = seen) -> Any:
                    seen.append((bucket.index(), bucket.buffer().numel()))
                    return hook(state, bucket)

                noted.__annotations__.clear()  # DDP takes only its own types there, or none
                model.register_comm_hook(None, noted)
                far = [
                    max((a - b).abs().max().item() for a, b in zip(one, other, strict=True))
                    for one, other in zip(plain, trained(model, rank), strict=True)
                ]
                found.append((far, seen))
    return found


def _ddp(model: nn.Module) -> Any:
    return DistributedDataParallel(model, bucket_cap_mb=0.005)


def ddp_refusals(rank: int, size: int, path: Path) -> list[str]:
    with joined(rank, size, path):
        two = commlang.load("ring_all_gather")
        found = [said(lambda: commlang.ddp_hook(two))]
        wrong = commlang.loads("pattern f(x: float32[n]):\n    all_reduce(x)\n", "f")
        with commlang.ddp_hook(wrong) as hook:
            model = _ddp(Mixed())
            model.register_comm_hook(None, hook)
            try:
                trained(model, rank, 1)
            except (CommlangError, RuntimeError) as error:
                found.append(str(error).splitlines()[0])
    return found


def fsdp(rank: int, size: int, path: Path) -> list[Any]:
    """How far the gradients of each pair of patterns are from FSDP2's own."""
    kinds = ("all_gather", "reduce_scatter")
    pairs = [[f"{kind}_single" for kind in kinds], [f"ring_{kind}" for kind in kinds]]
    found: list[Any] = []
    with joined(rank, size, path):
        mesh = init_device_mesh("cpu", (size,))
        plain = trained(_sharded(mesh, None), rank)
        for gather, scatter in pairs:
            with commlang.fsdp_comms(commlang.load(gather), commlang.load(scatter)) as comms:
                mine = trained(_sharded(mesh, comms), rank)
            found.append(
                [
                    max((a - b).abs().max().item() for a, b in zip(one, other, strict=True))
                    for one, other in zip(plain, mine, strict=True)
                ]
            )
        dist.barrier()
    return found


def _sharded(mesh: Any, comms: Any) -> Any:
    torch.manual_seed(0)
    model: Any = nn.Sequential(nn.Linear(7, 36), nn.Tanh(), nn.Linear(36, 8))
    for layer in (model[0], model[2], model):
        _fully_shard(layer, mesh=mesh)
        if comms is not None:
            layer.set_custom_all_gather(comms.all_gather)
            layer.set_custom_reduce_scatter(comms.reduce_scatter)
    return model
