"""Joining a process group by each way of meeting, and refusing what this torch cannot do."""

from __future__ import annotations

import re
import socket
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
import torch
import torch.distributed as dist

from commlang.errors import CommlangError, UsageError
from commlang.execute.environment import RankInfo
from commlang.execute.mpi import registry
from commlang.execute.world import choose_backend, choose_device, join, open_store
from tests.ports import free_port

if TYPE_CHECKING:
    from pathlib import Path

ALONE = RankInfo(0, 1, 0, 1, "", "127.0.0.1", 0, "torchrun")
CPU = torch.device("cpu")


@pytest.mark.parametrize("way", ["env", "tcp", "file"])
def test_a_group_is_made_and_destroyed(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TORCHELASTIC_USE_AGENT_STORE", raising=False)
    port = free_port()
    method = {"env": "env://", "tcp": f"tcp://127.0.0.1:{port}", "file": f"file://{tmp_path}/s"}[
        way
    ]
    info = replace(ALONE, master_port=port)
    with join(info, init_method=method, backend="gloo", device="cpu") as world:
        assert (world.rank, world.world_size, world.backend) == (0, 1, "gloo")
        assert (world.device, world.made_here) == (CPU, True)
        x = torch.ones(2)
        dist.all_reduce(x)
        assert x.tolist() == [1.0, 1.0]
    assert not dist.is_initialized()


def test_a_group_is_destroyed_after_an_error_too(tmp_path: Path) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        join(ALONE, init_method=f"file://{tmp_path}/s", device="cpu"),
    ):
        raise ZeroDivisionError
    assert not dist.is_initialized()


def test_a_group_that_exists_is_used_and_left_alone(tmp_path: Path) -> None:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/s", rank=0, world_size=1)
    try:
        with join(ALONE, backend="gloo", device="cpu") as world:
            assert not world.made_here
        assert dist.is_initialized()
        with (
            pytest.raises(UsageError, match=r"calls this rank 0 of 1, but .* says rank 1 of 3"),
            join(replace(ALONE, rank=1, world_size=3), device="cpu"),
        ):
            pass
    finally:
        dist.destroy_process_group()


def test_a_backend_for_each_device(tmp_path: Path) -> None:
    method = f"file://{tmp_path}/s"
    timeout = timedelta(seconds=30)
    with join(
        ALONE, init_method=method, backend="cpu:gloo", device="cpu", timeout=timeout
    ) as world:
        assert (world.backend, world.timeout) == ("cpu:gloo", timeout)
        dist.barrier()


def test_auto_is_what_suits_the_device() -> None:
    assert choose_backend("auto", CPU) == "gloo"
    assert choose_backend("CPU:gloo", CPU) == "cpu:gloo"
    assert choose_device("cpu", 3) == CPU


@pytest.mark.parametrize("backend", ["nccl", "ucc", "xccl"])
def test_a_backend_that_is_not_built_in(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dist, "is_backend_available", lambda name: name == "gloo")  # pyright: ignore
    with pytest.raises(UsageError, match=f"torch .* is built without {backend}. ") as caught:
        choose_backend(f"cpu:gloo,cuda:{backend}", CPU)
    assert "gloo" in str(caught.value)


def test_mpi_is_that_of_torch_or_else_the_one_over_mpi4py(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_backend("mpi", CPU) == choose_backend("commlang_mpi", CPU) == "commlang_mpi"
    with pytest.raises(UsageError, match="MPI moves tensors of the CPU, not of cuda:0; use --dev"):
        choose_backend("mpi", torch.device("cuda", 0))
    with pytest.raises(UsageError, match="'cpu:mpi,cuda:nccl': MPI moves all tensors; write mpi"):
        choose_backend("cpu:mpi,cuda:nccl", CPU)
    monkeypatch.setattr(dist, "is_mpi_available", lambda: True)
    assert choose_backend("mpi", torch.device("cuda", 0)) == "mpi"


def test_without_mpi4py_its_command_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda name: None)  # pyright: ignore
    with pytest.raises(UsageError, match=re.escape("`pip install 'commlang[mpi]'` brings both")):
        choose_backend("mpi", CPU)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError, match="unknown backend 'glu'; write gloo, nccl, mpi or auto"):
        choose_backend("glu", CPU)
    with pytest.raises(UsageError, match="unknown device 'gpu'; write cpu, cuda or cuda:<index>"):
        choose_device("gpu", 0)


def test_a_device_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert choose_device("cuda", 1) == torch.device("cuda", 1)
    assert choose_device("auto", 1) == torch.device("cuda", 1)
    assert choose_device("auto", 2) == CPU
    assert choose_device("cuda:0", 1) == torch.device("cuda", 0)
    with pytest.raises(UsageError, match="local rank 2 needs cuda:2, but torch sees 2 CUDA"):
        choose_device("cuda", 2)


def test_a_rank_without_a_place_to_meet() -> None:
    lost = replace(ALONE, master_addr=None, master_port=None)
    with pytest.raises(UsageError, match="MASTER_ADDR and MASTER_PORT are not set"):
        open_store(lost, 1.0)
    with pytest.raises(UsageError, match="init method 'ftp://x': write env://, tcp://host:port"):
        open_store(ALONE, 1.0, "ftp://x")


def test_rank_0_that_does_not_answer_is_named_with_its_place() -> None:
    port = free_port()
    info = RankInfo(1, 2, 0, 1, "", "127.0.0.1", port, "torchrun")
    with pytest.raises(CommlangError) as caught:
        open_store(info, 1.0)
    text = str(caught.value)
    assert f"rank 1 got no answer within 1 s from rank 0 at 127.0.0.1:{port}" in text
    assert "the same MASTER_ADDR and MASTER_PORT" in text


@pytest.mark.parametrize(
    ("rank", "host", "said"),
    [
        (0, "127.0.0.1", "rank 0 cannot serve the store at 127.0.0.1:{port}: another process has"),
        (1, "127.0.0.1", "from rank 0 at 127.0.0.1:{port} (what listens there gives no answer)"),
        (1, "no-such-host.invalid", "(there is no host 'no-such-host.invalid': "),
        (0, "no-such-host.invalid", "(there is no host 'no-such-host.invalid': "),
        (1, ".." * 99, "is no host name"),
    ],
)
def test_why_nobody_is_met_is_told(rank: int, host: str, said: str) -> None:
    with socket.create_server(("127.0.0.1", free_port())) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CommlangError) as caught:
            open_store(RankInfo(rank, 2, 0, 1, "", host, port, "torchrun"), 1.0)
    assert said.format(port=port) in str(caught.value)
