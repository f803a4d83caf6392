"""What torch's own DDP and FSDP2 send: every collective of a small GPT's first steps, on 4 ranks.

    python examples/parallelism/record.py --check      # against recorded.json beside this file
    python examples/parallelism/record.py > recorded.json

Each collective is seen twice. A dispatch mode sees the operators of c10d, below `torch.distributed`
and DDP's reducer in C++ alike; on the CPU the backward pass runs in the thread that called it, so
the mode sees that too. gloo's Flight Recorder, below the process group, must then tell of as many
of the same sizes in the same order. A transport cannot have carried what neither saw.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import pickle
import sys
import tempfile
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TORCH_FR_BUFFER_SIZE", "2000")

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, str(Path(__file__).parent))
from model import BATCH, SEQUENCE, VOCABULARY, Gpt, step

if TYPE_CHECKING:
    from collections.abc import Callable

    Built = tuple[Any, str]

WORLD, STEPS = 4, 2
RECORDED = Path(__file__).with_name("recorded.json")
_c10d: Any = torch._C._distributed_c10d  # pyright: ignore[reportAttributeAccessIssue]
_fully_shard: Any = fully_shard  # whose types are not complete

NAMES = {
    "allreduce_": "all_reduce",
    "allgather_": "all_gather",
    "broadcast_": "broadcast",
    "barrier": "barrier",
    "_allgather_base_": "all_gather_single",
    "_reduce_scatter_base_": "reduce_scatter_single",
}
"""torch's public function for an operator of c10d."""


class Recorder(TorchDispatchMode):
    """Notes each operator of c10d that this thread comes to, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[dict[str, Any]] = []
        self.phase = ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        if func.namespace == "c10d":
            declared = func._schema.arguments
            given = {a.name: a.default_value for a in declared if a.has_default_value()}
            given |= dict(zip([a.name for a in declared], args, strict=False)) | (kwargs or {})
            self.seen.append({"phase": self.phase, **_told(func, given)})
        return func(*args, **(kwargs or {}))


def _told(func: Any, given: dict[str, Any]) -> dict[str, Any]:
    """An operator's call as one of torch.distributed: what goes in, from whom, and how."""
    name = func._schema.name.removeprefix("c10d::")
    tensor = given.get("input_tensor", given.get("input_tensors", given.get("tensors")))
    while isinstance(tensor, (list, tuple)):
        assert len(tensor) == 1, f"{name} of several tensors at once"
        tensor = tensor[0]
    assert tensor is not None, given
    group = dist.ProcessGroup.unbox(given["process_group"])
    told = {
        "operation": NAMES[name],
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "elements": tensor.numel(),
        "group": dist.get_process_group_ranks(group),
        "async": given["async_op"] if "async_op" in given else given["asyncOp"],
    }
    if "reduce_op" in given:
        told["op"] = _reduce_op(given["reduce_op"])
    if "root_rank" in given:
        told["src"] = told["group"][given["root_rank"]]
    return told


def _reduce_op(boxed: Any) -> str:
    members: Any = dist.ReduceOp.RedOpType.__members__
    return next(name for name, op in members.items() if int(op) == boxed.op())


def ddp(**options: Any) -> Any:
    return DistributedDataParallel(Gpt(), **options)


def fsdp(reshard: bool, policy: MixedPrecisionPolicy | None = None) -> Any:
    """FSDP2 as its tutorial has it: each block, then the root with what is left."""
    model: Any = Gpt()
    options = {"mesh": init_device_mesh("cpu", (WORLD,)), "reshard_after_forward": reshard}
    if policy is not None:
        options["mp_policy"] = policy
    for block in model.blocks:
        _fully_shard(block, **options)
    _fully_shard(model, **options)
    return model


_HALF = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
# A cap below the smallest matrix, as 25 MiB is below those of a large model.
MODELS: dict[str, Callable[[], Any]] = {
    "ddp": partial(ddp, bucket_cap_mb=4 / 1024),
    "ddp_default": ddp,
    "ddp_without_buffers": partial(ddp, bucket_cap_mb=4 / 1024, broadcast_buffers=False),
    "zero2": partial(fsdp, reshard=False),
    "zero3": partial(fsdp, reshard=True),
    "zero3_bfloat16": partial(fsdp, reshard=True, policy=_HALF),
}


def record(make: Callable[[], Any]) -> list[dict[str, Any]]:
    """All that this rank issues while a model is made and trained for STEPS steps."""
    before = len(_flights())
    torch.manual_seed(0)
    text = torch.randint(VOCABULARY, (BATCH, SEQUENCE))
    with Recorder() as recorder:
        recorder.phase = "construction"
        model = make()
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        for number in range(1, STEPS + 1):
            recorder.phase = f"step {number}"
            step(model, optimiser, text)
    dist.barrier()
    flights = [f for f in _flights()[before:] if f[0] != "barrier"]
    seen = [(_FLIGHTS[one["operation"]], one["elements"]) for one in recorder.seen]
    assert seen == flights, f"the dispatcher tells of {seen}, gloo of {flights}"
    return recorder.seen


_FLIGHTS = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "broadcast": "broadcast",
    "all_gather_single": "all_gather",
    "reduce_scatter_single": "all_reduce",
}
"""What gloo calls it: its reduce-scatter is an all-reduce of which each rank keeps a part."""


def _flights() -> list[tuple[str, int]]:
    """Kind and elements of all that gloo was told to do so far."""
    entries = pickle.loads(_c10d._dump_fr_trace())["entries"]
    return [(e["profiling_name"].removeprefix("gloo:"), _elements(e)) for e in entries]


def _elements(entry: dict[str, Any]) -> int:
    return int(torch.Size(entry["input_sizes"][0]).numel()) if entry["input_sizes"] else 0


def rank_main(rank: int, store: str, answer: Any) -> None:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=WORLD,
        timeout=timedelta(seconds=90),
    )
    found = {name: record(make) for name, make in MODELS.items()}
    every: list[Any] = [None] * WORLD
    dist.all_gather_object(every, found)
    assert all(one == every[0] for one in every), "ranks issue different collectives"
    if rank == 0:
        answer.send({"torch": torch.__version__.partition("+")[0], "recorded": found})
    dist.destroy_process_group()


def recorded() -> dict[str, Any]:
    """Start the ranks, record, and return what rank 0 saw; all others have seen the same."""
    context = multiprocessing.get_context("fork")  # torch is imported once
    receiving, sending = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as folder:
        store = f"{folder}/store"
        ranks = [
            context.Process(target=rank_main, args=(rank, store, sending)) for rank in range(WORLD)
        ]
        for process in ranks:
            process.start()
        sending.close()  # so that the end of all ranks ends the wait
        try:
            found = receiving.recv() if receiving.poll(100) else None
        except EOFError:
            found = None
        for process in ranks:
            process.join(10)
            process.kill()
    assert found is not None, "a rank failed"
    return found


def text_of(found: dict[str, Any]) -> str:
    """JSON with one collective a line."""
    parts = []
    for name, collectives in found["recorded"].items():
        lines = ",\n".join(f"      {json.dumps(one)}" for one in collectives)
        parts.append(f"    {json.dumps(name)}: [\n{lines}\n    ]")
    inner = ",\n".join(parts)
    return f'{{\n  "torch": "{found["torch"]}",\n  "recorded": {{\n{inner}\n  }}\n}}\n'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # pyright: ignore[reportOptionalMemberAccess]
    parser.add_argument("--check", action="store_true", help="compare with recorded.json")
    check = parser.parse_args().check
    found = recorded()
    if not check:
        sys.stdout.write(text_of(found))
        return 0
    known = json.loads(RECORDED.read_text(encoding="utf-8"))
    for name, collectives in found["recorded"].items():
        same = collectives == known["recorded"].get(name)
        print(f"{name}: {len(collectives)} collectives, {'as' if same else 'NOT as'} recorded")
    return 0 if found["recorded"] == known["recorded"] else 1


if __name__ == "__main__":
    sys.exit(main())
