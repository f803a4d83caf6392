"""A small program of ranks for the tests: run by `launch`, or as a rank of torchrun.

    python rank_work.py '{"way": "launch", "fault": "kill", "options": {"nproc_per_node": 3}}'

Each of ROUNDS rounds is a local step (position 2k) and an all_reduce (position 2k + 1). In round
FAULTY_ROUND, the rank FAULTY_RANK does what `fault` says instead of the local step.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from commlang.errors import CommlangError
from commlang.execute.diagnosis import Narrator
from commlang.execute.environment import detect
from commlang.execute.launch import launch
from commlang.execute.options import LaunchOptions

if TYPE_CHECKING:
    from commlang.execute.rank import RankContext

ROUNDS = 5
FAULTY_ROUND = 3
FAULTY_RANK = 1


def describe(rank: int, position: int) -> str:
    what = "all_reduce(x)" if position % 2 else f"step() of rank {rank}"
    return f"demo.cl:{10 + position} {what}"


def narrator(world_size: int) -> Narrator:
    def awaits(rank: int, position: int) -> list[tuple[int, int]]:
        del rank
        return [(peer, position) for peer in range(world_size)] if position % 2 else []

    return Narrator(describe, awaits)


def commit(fault: str) -> None:
    match fault:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise ValueError("boom")
        case "refuse":
            error = CommlangError("ensure failed at demo.cl:16")
            error.exit_code = 2
            raise error
        case "hang":
            time.sleep(300)
        case "vanish":
            os._exit(0)
        case "abort":
            os.write(2, b"[W] a warning of torch\nterminate called\n")
            os.abort()
        case "exit":
            sys.exit(0)
        case _:
            assert fault == ""


def work(context: RankContext, fault: str) -> tuple[int, float, int]:
    if (fault, context.info.rank) == ("kill early", FAULTY_RANK):
        os.kill(os.getpid(), signal.SIGKILL)
    import torch
    import torch.distributed as dist

    assert torch.get_num_threads() == 1
    print(f"hello from rank {context.info.rank}", flush=True)
    context.follow(narrator(context.info.world_size))
    if (fault, context.info.rank) == ("late", FAULTY_RANK):
        time.sleep(300)
    with context.join(backend="gloo", device="cpu") as world:
        position = context.position
        x = torch.tensor([float(world.rank + 1)])
        for k in range(ROUNDS):
            position[0] = 2 * k
            if (k, world.rank) == (FAULTY_ROUND, FAULTY_RANK):
                commit(fault)
            position[0] = 2 * k + 1
            dist.all_reduce(x)
            if (k, world.rank) == (FAULTY_ROUND - 1, 0):
                print("close to the fault", flush=True)
    assert not dist.is_initialized()
    return world.rank, x.item(), context.info.local_rank


def main(argv: list[str]) -> int:
    request: dict[str, Any] = json.loads(argv[0])
    fault, timeout = request.get("fault", ""), request.get("timeout", 60.0)
    if request["way"] == "rank":
        from commlang.execute.rank import run_rank

        info = detect(os.environ)
        assert info is not None
        if (fault, info.rank) == ("kill early", FAULTY_RANK):
            os.kill(os.getpid(), signal.SIGKILL)
        result = run_rank(work, (fault,), info, timeout=timeout)
        os.write(1, f"{json.dumps({'rank': info.rank, 'results': [result]})}\n".encode())
        return 0
    options = LaunchOptions(**request["options"])
    size = options.nproc_per_node * options.nodes
    try:
        results = launch(work, (fault,), options, narrator=narrator(size), timeout=timeout)
    except CommlangError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return error.exit_code
    print(json.dumps({"results": results}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
