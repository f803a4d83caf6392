"""`commlang run` before a rank starts: what the backend that it will use allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlang.cli.prepare import target_of
from commlang.execute.settings import Settings
from commlang.transports import PORTABLE, Backend, NcclInit, Target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Result

    Cli = Callable[..., Result]

IN_FLIGHT = """\
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    group a = ranks
    group b = ranks
    one = async all_reduce(x)
    two = async all_reduce(y, group=a)
    three = async all_reduce(z, group=b)
    wait(one)
    wait(two)
    wait(three)
"""
ORDER = """\
pattern main(x: float32[n], y: float32[n], n = 8):
    inbox = async recv(y, src=1 - rank)
    outbox = async send(x, dst=1 - rank)
    wait(inbox)
    wait(outbox)
"""
EAGER = NcclInit.EAGER


@pytest.mark.parametrize(
    ("backend", "device", "local", "target"),
    [
        ("auto", "cpu", 4, Target(Backend.GLOO, EAGER, "cpu")),
        ("auto", "cuda", 4, Target(Backend.NCCL, EAGER, "cuda")),
        ("auto", "cuda:1", None, Target(Backend.NCCL, EAGER, "cuda")),
        ("gloo", "cuda", 4, Target(Backend.GLOO, EAGER, "cuda")),
        ("gloo", "auto", None, Target(Backend.GLOO, EAGER, "cpu")),
        ("nccl", "auto", 4, Target(Backend.NCCL, EAGER, "cuda")),
        ("mpi", "cpu", 4, Target(Backend.MPI, EAGER, "cpu")),
        ("cpu:gloo,cuda:nccl", "cpu", 4, Target(Backend.GLOO, EAGER, "cpu")),
        ("cpu:gloo,cuda:nccl", "cuda", 4, Target(Backend.NCCL, EAGER, "cuda")),
        ("ucc", "cpu", 4, Target(device="cpu")),
        ("auto", "auto", None, PORTABLE),
    ],
)
def test_the_target_of_a_run(backend: str, device: str, local: int | None, target: Target) -> None:
    assert target_of(Settings(backend=backend, device=device), local) == target


def test_what_hangs_on_the_backend_is_refused(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text(ORDER)
    dry = ("run", "a.cl", "--dry-run", "--nproc-per-node", "2")
    result = cli(*dry, "--backend", "nccl", "--allow-hazards")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error[CL250]: hangs on NCCL")
    result = cli(*dry, "--backend", "gloo")
    assert (result.code, result.err) == (0, "")
    assert "proven: matched, agreeing collectives, deadlock-free under rendezvous\n" in result.out


def test_a_hazard_on_nccl_is_refused_unless_it_is_allowed(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text(IN_FLIGHT)
    dry = ("run", "a.cl", "--dry-run", "--backend", "nccl")
    result = cli(*dry)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("warning[CL257]")
    assert "\n  = give --allow-hazards to run it all the same\n" in result.err
    allowed = cli(*dry, "--allow-hazards")
    assert allowed.code == 0
    assert allowed.err.startswith("warning[CL257]")
    assert "--allow-hazards" not in allowed.err
    assert "on nccl" not in allowed.out
    reason = "  # commlang: ignore[CL257] three fit on our devices"
    text = IN_FLIGHT.replace("(z, group=b)", f"(z, group=b){reason}")
    (folder / "a.cl").write_text(text)
    silent = cli(*dry)
    assert (silent.code, silent.err) == (0, "")
    assert "on nccl" not in silent.out


def test_the_plan_says_what_was_proven_on_nccl(cli: Cli, folder: Path) -> None:
    (folder / "a.cl").write_text("pattern main(x: float32[8]):\n    all_reduce(x)\n")
    result = cli("run", "a.cl", "--dry-run", "--backend", "nccl")
    assert (result.code, result.err) == (0, "")
    assert "deadlock-free on nccl (eager communicators)\n" in result.out
