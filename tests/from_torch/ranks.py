"""Run pieces of torch code on real gloo ranks and tell how each rank ended.

Reads cases as JSON from standard input and writes as JSON, for each, a line per rank: the value
that is asked for, the uncaught exception, or the signal that ended the process. torch is imported
once and every rank is forked from here, so that a case costs a fraction of a second. It is a
program of its own: a rank may abort, and a test's process must not have forked such children.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FileStore, Store
from torch.distributed.distributed_c10d import _set_pg_timeout

TIMEOUT = 25.0
"""Of the process group, in seconds."""
LIMIT = TIMEOUT + 5
"""Seconds after which a rank that has neither ended nor told its value is said to hang."""


@dataclass(frozen=True, slots=True)
class Case:
    code: str
    ranks: int
    shows: str
    """An expression for what a rank has in the end."""
    alone: bool = False
    """Whether the code is the whole script: it finds no process group, and makes its own."""
    cuda: str = "self"
    """What `.cuda()` gives, there being no GPU: `self`, as for a tensor there, or `copy`."""
    timeout: float = TIMEOUT
    """Of the process group, once all ranks have joined it, in seconds."""


@dataclass(slots=True)
class Rank:
    pid: int
    told: int
    """Where the rank writes its value."""
    errors: Path
    line: str = ""


def run(case: Case) -> list[str]:
    """How each rank ended, as one line."""
    with tempfile.TemporaryDirectory() as folder:
        held, release = os.pipe()
        gate = (held, release)
        ranks = [_fork(case, number, Path(folder), gate) for number in range(case.ranks)]
        deadline = time.monotonic() + LIMIT
        for rank in ranks:
            ready, _, _ = select.select([rank.told], [], [], max(0, deadline - time.monotonic()))
            rank.line = os.read(rank.told, 1 << 16).decode() if ready else "hangs"
        os.close(release)
        os.close(held)
        for rank in ranks:
            if rank.line == "hangs":
                os.kill(rank.pid, signal.SIGKILL)
            status = os.waitpid(rank.pid, 0)[1]
            os.close(rank.told)
            if not rank.line:
                rank.line = _death(status, rank.errors.read_text(encoding="utf-8"))
    return [rank.line for rank in ranks]


def _death(status: int, errors: str) -> str:
    """`SIGABRT: …` with what the process last said, without the C++ library's preface."""
    if not os.WIFSIGNALED(status):
        return f"exit code {os.waitstatus_to_exitcode(status)}: {errors}"
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    said = lines[-1].removeprefix("what():").strip() if lines else ""
    return f"{signal.Signals(os.WTERMSIG(status)).name}: {said}"


def _fork(case: Case, number: int, folder: Path, gate: tuple[int, int]) -> Rank:
    told, tell = os.pipe()
    errors = folder / f"errors{number}"
    pid = os.fork()
    if pid:
        os.close(tell)
        return Rank(pid, told, errors)
    held, release = gate
    os.close(release)
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
    _be_rank(case, number, folder, tell, held)


def _be_rank(case: Case, number: int, folder: Path, tell: int, held: int) -> NoReturn:
    """Run the code and end without any clean-up, in which ranks would wait for one another.

    A rank that is done stays until `held` is closed, when all have ended or told their value: the
    others may still need its connections. One that fails goes at once, as a script would.
    """
    try:
        line = _value(case, number, folder)
    except BaseException as error:
        os.write(tell, f"{type(error).__name__}: {error}".split("\n")[0].encode())
        os._exit(1)
    os.write(tell, line.encode())
    os.close(tell)
    os.read(held, 1)
    os._exit(0)


def _value(case: Case, number: int, folder: Path) -> str:
    names: dict[str, Any] = {}
    if not case.alone:
        torch.manual_seed(number)
        torch.Tensor.cuda = _copied if case.cuda == "copy" else _itself
        _join(case, number, FileStore(str(folder / "store"), case.ranks))
        names |= {"torch": torch, "dist": dist, "rank": number, "world_size": case.ranks}
        names["tensor"] = torch.full((1,), number + 1.0)
    exec(compile(case.code, "snippet.py", "exec"), names)
    return repr(eval(case.shows, names))


def _itself(self: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return self


def _copied(self: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return self.clone()


def _join(case: Case, number: int, store: Store) -> None:
    dist.init_process_group(
        "gloo",
        store=store,
        rank=number,
        world_size=case.ranks,
        timeout=timedelta(seconds=TIMEOUT),
    )
    _set_pg_timeout(timedelta(seconds=case.timeout))
    # A rank that fails at once must not be gone while others are still connecting to it.
    store.set(f"joined/{number}", "")
    store.wait([f"joined/{other}" for other in range(case.ranks)])


def main() -> None:
    """Run all cases, given by name."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    torch.set_num_threads(1)
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        os.environ.pop(name, None)
    cases = {name: Case(**case) for name, case in json.load(sys.stdin).items()}
    if any("steps" in case.code for case in cases.values()):
        import steps as steps  # before forking: it takes seconds
    json.dump({name: run(case) for name, case in cases.items()}, sys.stdout)


if __name__ == "__main__":
    main()
