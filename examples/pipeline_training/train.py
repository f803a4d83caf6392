"""Train a transformer over the ranks of a pipeline, by the 1F1B schedule of the pattern library.

    torchrun --nproc-per-node 4 examples/pipeline_training/train.py --check

Each rank has one stage of the model. The pattern `one_f_one_b` says who sends what to whom, and
when; its externs `forward` and `backward` are the methods of `Stage`. `--check` trains the same
model in one process too, and compares losses and parameters. It runs on GPUs, over NCCL, if there
is one for each rank of the node, and else on CPUs, over gloo.
"""

from __future__ import annotations

import argparse
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import torch
import torch.distributed as dist
from model import make_stages
from torch import nn

import commlang

MICRO, BATCH, LENGTH, WIDTH = 8, 4, 32, 64
"""Micro-batches of a step, texts of a micro-batch, bytes of a text, and numbers for each byte."""
ROUNDING = 1e-3
"""What may differ on a GPU, where some sums are not made in one order; on CPUs nothing may."""

TEXT = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))


def batches(step: int, device: torch.device) -> torch.Tensor:
    """The texts of a step, the same on every rank: int64 [micro, b, s + 1]."""
    text = torch.tensor(list(TEXT), device=device)
    places = torch.Generator().manual_seed(step)
    starts = torch.randint(len(text) - LENGTH, (MICRO, BATCH, 1), generator=places)
    return text[(starts + torch.arange(LENGTH + 1)).to(device)]


def loss_of(logits: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
    """A micro-batch's part of the loss of its step."""
    return nn.functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten()) / MICRO


class Stage:
    """One stage of the model, in the words of the pattern's externs."""

    def __init__(self, module: nn.Module, first: bool, last: bool) -> None:
        self.module, self.first, self.last = module, first, last
        self.texts = torch.empty(0)
        self.under_way: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def forward(self, act: torch.Tensor, out: torch.Tensor, m: int) -> None:
        """From what came in, [b, s d], to what goes out; the last stage makes its loss of it."""
        text = self.texts[m]
        # `.data`, since autograd would take what is received into other slots of the same buffer
        # for a change of this one. The pattern writes to a slot again after its backward only.
        given = act.data.requires_grad_()
        made = self.module(text[:, :-1] if self.first else given.view(BATCH, LENGTH, WIDTH))
        if self.last:
            made = loss_of(made, text)
        out.copy_(made.detach().expand_as(out) if self.last else made.detach().view_as(out))
        self.under_way[m] = given, made

    def backward(self, act: torch.Tensor, dout: torch.Tensor, din: torch.Tensor, m: int) -> None:
        """From the gradient of what went out to that of what came in; weights collect theirs."""
        given, made = self.under_way.pop(m)
        made.backward(dout[0, 0] if self.last else dout.view_as(made))
        if given.grad is not None:  # the first stage has read bytes
            din.copy_(given.grad)


def train(stage: Stage, world: Any, steps: int) -> list[float]:
    """Train for some steps; returns their losses, which only the last stage knows."""
    shape = (MICRO, BATCH, LENGTH * WIDTH)
    x, y, dx = (torch.zeros(shape, device=world.device) for _ in range(3))
    tensors = {"x": x, "y": y, "dx": dx}
    plan = commlang.load("one_f_one_b").plan(world=world.world_size, tensors=tensors)
    optimiser = torch.optim.AdamW(stage.module.parameters(), lr=3e-3)
    externs = {"forward": stage.forward, "backward": stage.backward}
    losses: list[float] = []
    with commlang.Executor(plan, device=world.device, externs=externs) as executor:
        for step in range(steps):
            stage.texts = batches(step, world.device)
            optimiser.zero_grad()
            executor.run(**tensors)
            optimiser.step()
            if stage.last:
                losses.append(sum(y[:, 0, 0].tolist()))
                print(f"step {step:3}  loss {losses[-1]:.4f}", flush=True)
    return losses


def train_alone(model: nn.Module, device: torch.device, steps: int) -> list[float]:
    """The same in one process: micro-batch after micro-batch, so that sums have the same order."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses: list[float] = []
    for step in range(steps):
        optimiser.zero_grad()
        parts = [train_on(model, text) for text in batches(step, device)]
        optimiser.step()
        losses.append(sum(torch.stack(parts).tolist()))
    return losses


def train_on(model: nn.Module, text: torch.Tensor) -> torch.Tensor:
    loss = loss_of(model(text[:, :-1]), text)
    loss.backward()
    return loss.detach()


def differs(stage: Stage, losses: list[float], world: Any, args: argparse.Namespace) -> float:
    """How far losses and parameters are from those of one process; told to the last rank only."""
    last = world.world_size - 1
    mine = [p.detach().cpu() for p in stage.module.parameters()]
    parts: list[Any] | None = [None] * world.world_size if stage.last else None
    cast("Any", dist).gather_object(mine, parts, dst=last)
    if parts is None:
        return 0.0
    alone = nn.Sequential(*make_stages(world.world_size, args.layers)).to(world.device)
    pairs = list(zip(losses, train_alone(alone, world.device, args.steps), strict=True))
    trained = [p for part in parts for p in part]
    far = [
        (p.detach().cpu() - q).abs().max().item()
        for p, q in zip(alone.parameters(), trained, strict=True)
    ]
    return max(*far, *(abs(one - other) for one, other in pairs))


def arguments(argv: list[str] | None) -> argparse.Namespace:
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--layers", type=int, default=8, help="a multiple of the number of ranks")
    parser.add_argument("--device", default="auto", help="cpu, cuda, or auto (the default)")
    parser.add_argument("--check", action="store_true", help="compare with training in one process")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    args = arguments(argv)
    with commlang.process_group(device=args.device, timeout=timedelta(minutes=5)) as world:
        if args.layers < 1 or args.layers % world.world_size:
            raise commlang.UsageError(
                f"--layers {args.layers} is no multiple of the {world.world_size} ranks"
            )
        last = world.world_size - 1
        module = make_stages(world.world_size, args.layers)[world.rank].to(world.device)
        stage = Stage(module, first=world.rank == 0, last=world.rank == last)
        if stage.last:
            print(
                f"1F1B on {world.world_size} ranks ({dist.get_backend()}, {world.device.type}): "
                f"{args.layers} layers, {MICRO} micro-batches of {BATCH} texts a step"
            )
        losses = train(stage, world, args.steps)
        if not args.check:
            return 0
        far = differs(stage, losses, world, args)
    if stage.last:
        print("losses and parameters " + ("equal" if far == 0 else f"within {far:.1g} of"), end=" ")
        print("those of one process" + (", bit by bit" if far == 0 else ""))
    return int(far > (ROUNDING if world.device.type == "cuda" else 0))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except commlang.CommlangError as error:
        sys.exit(f"error: {error}")
