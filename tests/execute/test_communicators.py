"""What is read off a process group: its backends, device and timeout; and what NCCL refuses."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

import commlang
from commlang.errors import PatternError, UsageError
from commlang.execute import communicators
from commlang.execute.executor import Executor

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
TEXT = "pattern f(x: float32[4]):\n    group g = ranks[:]\n    all_reduce(x, group=g)\n"


@pytest.fixture
def world() -> Generator[dist.ProcessGroup]:
    """Rank 2 of 4, of which it is the only one that is there."""
    dist.init_process_group("fake", store=FakeStore(), rank=2, world_size=4)
    assert dist.group.WORLD is not None
    yield dist.group.WORLD
    dist.destroy_process_group()


def has_backends(monkeypatch: pytest.MonkeyPatch, config: str) -> None:
    monkeypatch.setattr(dist, "get_backend_config", lambda group=None: config)  # pyright: ignore


def test_each_device_has_its_backend(
    world: dist.ProcessGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    has_backends(monkeypatch, "cpu:gloo,cuda:nccl")
    assert communicators.backend_of(world, CPU) == "gloo"
    assert communicators.backend_of(world, CUDA) == "nccl"
    assert communicators.device_of(world) == torch.device("cuda", 3)
    has_backends(monkeypatch, "cpu:gloo,cuda:gloo")
    assert communicators.device_of(world) == CPU
    has_backends(monkeypatch, "cuda:nccl")
    assert communicators.device_of(world) == torch.device("cuda", 3)
    with pytest.raises(UsageError, match=r"the group \(cuda:nccl\) moves no tensors on cpu"):
        communicators.backend_of(world, CPU)


def test_the_timeout_is_that_of_the_group(tmp_path: Path) -> None:
    dist.init_process_group(
        "gloo",
        init_method=f"file://{tmp_path}/store",
        rank=0,
        world_size=1,
        timeout=timedelta(seconds=41),
    )
    try:
        assert dist.group.WORLD is not None
        assert communicators.timeout_of(dist.group.WORLD, CPU) == timedelta(seconds=41)
    finally:
        dist.destroy_process_group()


def test_nccl_would_wait_for_ranks_outside_of_a_part_of_an_eager_world(
    world: dist.ProcessGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = dist.new_group([0, 2])
    plan = commlang.loads(TEXT).plan(world=2)
    with Executor(plan, group=group) as executor:  # which others may do
        executor.run()
    executor = Executor(plan, group=group)
    has_backends(monkeypatch, "cuda:nccl")
    monkeypatch.setattr(communicators, "_eager", lambda: True)
    with pytest.raises(UsageError, match="NCCL cannot do once init_process_group was given dev"):
        communicators.Communicators(plan, executor.group, executor.timeout, 1)
    whole = commlang.loads(TEXT).plan(world=4)
    made = communicators.Communicators(whole, world, executor.timeout, 1).made
    assert [dist.get_process_group_ranks(g) for g in made] == [[0, 1, 2, 3]]


def crossing(body: str) -> commlang.Plan:
    """Four ranks, planned for no backend in particular."""
    text = "pattern f(x: float32[4], y: float32[4], z: float32[4]):\n"
    return commlang.loads(text + body).plan(world=4)


def test_what_hangs_on_nccl_gets_no_executor_there(
    world: dist.ProcessGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_backends(monkeypatch, "cpu:nccl")
    hangs = crossing(
        "    a = async send(x, dst=ranks.next)\n    recv(y, src=ranks.prev)\n    wait(a)\n"
    )
    with pytest.raises(PatternError, match="hangs on NCCL"):
        Executor(hangs, device="cpu", allow_hazards=True)


def test_what_may_hang_on_nccl_has_to_be_allowed(
    world: dist.ProcessGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_backends(monkeypatch, "cpu:nccl")
    groups = "".join(f"    group {g} = ranks[:]\n" for g in "abc")
    started = "".join(
        f"    h{g} = async all_reduce({x}, group={g})\n" for g, x in zip("abc", "xyz", strict=True)
    )
    may_hang = crossing(groups + started + "".join(f"    wait(h{g})\n" for g in "abc"))
    with pytest.raises(PatternError, match=r"in flight together[\s\S]*allow_hazards=True"):
        Executor(may_hang, device="cpu")
    assert Executor(may_hang, device="cpu", allow_hazards=True).backend == "nccl"
