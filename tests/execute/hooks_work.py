"""What each rank does in the tests of patterns inside DDP and FSDP2; as in `executor_work`."""

from __future__ import annotations

from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import commlang
from commlang.errors import CommlangError
from tests.execute.executor_work import SHORT, joined, said, tell, wait_for
from tests.tuning.tables import table

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


def ddp_auto(rank: int, size: int, path: Path) -> tuple[list[float], set[str]]:
    """How far the gradients are from DDP's own if a table chooses; and what it chose."""
    chosen: set[str] = set()
    with joined(rank, size, path):
        plain = trained(_ddp(Mixed()), rank)
        auto = commlang.auto(table())
        plan = auto.plan

        def noted(*args: Any, **given: Any) -> Any:
            found = plan(*args, **given)
            chosen.add(found.pattern)
            return found

        auto.plan = noted
        with commlang.ddp_hook(auto) as hook:
            model = _ddp(Mixed())
            model.register_comm_hook(None, hook)
            mine = trained(model, rank)
    return [
        max((a - b).abs().max().item() for a, b in zip(one, other, strict=True))
        for one, other in zip(plain, mine, strict=True)
    ], chosen


def _ddp(model: nn.Module, group: dist.ProcessGroup | None = None) -> Any:
    return DistributedDataParallel(model, process_group=group, bucket_cap_mb=0.005)


def ddp_on_a_dim(mesh: DeviceMesh, rank: int) -> list[float]:
    """DDP over one dim of a mesh, with a hook over it: how far it is from DDP's own gradients."""
    group = mesh.get_group("dp")
    plain = trained(_ddp(Mixed(), group), rank, 1)
    pattern = commlang.loads("pattern f(x: t[n], t = float32):\n    all_reduce(x)\n", "f")
    found: list[float] = []
    for where in (mesh["dp"], group):
        with commlang.ddp_hook(pattern, process_group=where) as hook:
            model = _ddp(Mixed(), group)
            model.register_comm_hook(None, hook)
            mine = trained(model, rank, 1)
        pairs = zip(chain(*plain), chain(*mine), strict=True)
        found.append(max((a - b).abs().max().item() for a, b in pairs))
    return found


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


class Bucket:
    """What DDP hands to its hook."""

    def __init__(self, index: int) -> None:
        self._index, self._buffer = index, torch.ones(8)

    def index(self) -> int:
        return self._index

    def buffer(self) -> torch.Tensor:
        return self._buffer


def ddp_missing(rank: int, size: int, path: Path) -> list[str]:
    """Rank 1 stays away from the second bucket; the hook is of no more use, and says so."""
    found: list[str] = []
    with joined(rank, size, path):
        dist.barrier()
        hasty: Any = dist.new_group(timeout=timedelta(seconds=2 * SHORT))
        pattern = commlang.load("ring_all_reduce")
        with commlang.ddp_hook(pattern, process_group=hasty) as hook:
            hook(None, Bucket(0)).wait()
            if rank == 1:
                for other in (0, 2):
                    wait_for(path, f"failed {other}")
                return []
            for index in (0, 0, 1):
                found.append(_failure(hook, Bucket(index)))
                tell(path, f"failed {rank}")
    return found


def _failure(hook: Any, bucket: Bucket) -> str:
    try:
        hook(None, bucket).wait()
    except (CommlangError, RuntimeError) as error:
        return str(error).splitlines()[0]
    return ""


def fsdp(rank: int, size: int, path: Path) -> list[Any]:
    """How far the gradients of each pair of patterns are from FSDP2's own; then DDP on a dim."""
    kinds = ("all_gather", "reduce_scatter")
    pairs = [[f"{kind}_single" for kind in kinds], [f"ring_{kind}" for kind in kinds]]
    found: list[Any] = []
    with joined(rank, size, path):
        grid = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("dp", "tp"))
        by_dim = ddp_on_a_dim(grid, rank)
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
    return [*found, by_dim]


def _sharded(mesh: Any, comms: Any) -> Any:
    torch.manual_seed(0)
    model: Any = nn.Sequential(nn.Linear(7, 36), nn.Tanh(), nn.Linear(36, 8))
    for layer in (model[0], model[2], model):
        _fully_shard(layer, mesh=mesh)
        if comms is not None:
            layer.set_custom_all_gather(comms.all_gather)
            layer.set_custom_reduce_scatter(comms.reduce_scatter)
    return model
