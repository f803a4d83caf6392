"""Data-parallel training over several nodes; gradients cross the network between nodes once.

    torchrun --nnodes 2 --node-rank 0 --nproc-per-node 8 --master-addr HOST train.py

on HOST, and the same with `--node-rank 1` on the other node; under Slurm, `sbatch train.sbatch`.
The model is torch's DistributedDataParallel. Its buckets are reduced by `hierarchical_all_reduce`
of the pattern library: inside each node, then each rank's share between the nodes. `--check` trains
with torch's own reduction too and compares the parameters. It runs on GPUs, over NCCL, if there is
one for each rank of the node, and else on CPUs, over gloo.
"""

from __future__ import annotations

import argparse
import os
import sys
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import commlang

ROUNDING = 1e-5
"""How far parameters may be from those of torch's reduction, which adds in another order."""


def ranks_of_a_node(world_size: int) -> int:
    """What torchrun says, or srun --ntasks-per-node; else all ranks are on one node."""
    names = ("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE")
    return next((int(os.environ[n]) for n in names if n in os.environ), world_size)


def make_model(device: torch.device) -> nn.Module:
    torch.manual_seed(0)
    layers = nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 1)
    return nn.Sequential(*layers).to(device)


def train(hook: Any, world: Any, steps: int, say: bool) -> list[torch.Tensor]:
    """Train on other data on each rank; `hook` reduces the gradients, or DDP itself if None."""
    model = DistributedDataParallel(make_model(world.device))
    if hook is not None:
        model.register_comm_hook(None, hook)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    data = torch.Generator().manual_seed(world.rank)
    for step in range(steps):
        x = torch.randn(32, 64, generator=data).to(world.device)
        loss = nn.functional.mse_loss(model(x), x[:, :8].sum(1, keepdim=True).sin())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if say:
            print(f"step {step:3}  loss {mean.item() / world.world_size:.4f}", flush=True)
    return [p.detach() for p in model.parameters()]


def differs(parameters: list[torch.Tensor], world: Any, steps: int) -> float:
    """How far any rank's parameters are from those that torch's own reduction makes."""
    plain = train(None, world, steps, say=False)
    pairs = zip(parameters, plain, strict=True)
    far = torch.stack([(mine - theirs).abs().max() for mine, theirs in pairs]).max()
    dist.all_reduce(far, op=dist.ReduceOp.MAX)
    return far.item()


def main(argv: list[str] | None = None) -> int:
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--device", default="auto", help="cpu, cuda, or auto (the default)")
    parser.add_argument("--check", action="store_true", help="compare with DDP's own reduction")
    args = parser.parse_args(argv)
    pattern = commlang.load("hierarchical_all_reduce")
    with commlang.process_group(device=args.device, timeout=timedelta(minutes=5)) as world:
        node = ranks_of_a_node(world.world_size)
        say = world.rank == 0
        if say:
            nodes = f"{world.world_size // node} nodes of {node} ranks"
            print(f"DDP on {nodes} ({dist.get_backend()}, {world.device.type}), by {pattern.name}")
        with commlang.ddp_hook(pattern, node=node) as hook:
            parameters = train(hook, world, args.steps, say)
        far = differs(parameters, world, args.steps) if args.check else 0.0
    if say and args.check:
        told = "as by" if far <= ROUNDING else "not as by"
        print(f"parameters {told} torch's own reduction, largest difference {far:.1g}")
    return int(far > ROUNDING)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except commlang.CommlangError as error:
        sys.exit(f"error: {error}")
