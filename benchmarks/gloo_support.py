"""What gloo and torch can do, cell by cell, against `commlang/transports/support.toml`.

    python benchmarks/gloo_support.py > benchmarks/gloo_support.txt
    python benchmarks/gloo_support.py --world 3 --json all_reduce/int32/sum send/float32

A cell is (operation, dtype, reduce op), called as the executor calls it, by real ranks, with values
that tell a right result from a wrong one. It is "yes" if all ranks end with the right values,
"refused" if all get an error, "wrong" if a value is not right, and "astray" if the ranks fare
differently, or one dies or waits for ever; new ranks take over then. The list operations are
measured with lists of equal and of unequal lengths.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from commlang.dtypes import DTYPES
from commlang.execute.collectives import bind_communication
from commlang.execute.local_work import bind_local
from commlang.execute.memory import Memory, shape_of
from commlang.operations import ReduceOp
from commlang.program import build
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.transports.support import called, supports

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.program import Program

WORLD = 2
LIMIT_S = 60
DEADLINE_S = 3600
UNEVEN = ("all_gather uneven", "all_to_all uneven", "reduce_scatter uneven")
LOCAL = ("copy", "accumulate", "scale", "fill")

MOVES = {
    "send": "if rank == 0:\n    send(x, dst=1)\nelif rank == 1:\n    recv(x, src=0)",
    "broadcast": "broadcast(x, src=0)",
    "scatter": "if rank > 0:\n    scatter(y, src=0)\nelse:\n    scatter(y, x.chunks(world), src=0)",
    "gather": "if rank > 0:\n    gather(y, dst=0)\nelse:\n    gather(y, z.chunks(world), dst=0)",
    "all_gather": "all_gather(z.chunks(world), y)",
    "all_gather_single": "all_gather_single(z, y)",
    "all_gather uneven": "all_gather(z.chunks(world), y)",
    "all_to_all": "all_to_all(z.chunks(world), x.chunks(world))",
    "all_to_all_single": "all_to_all_single(z, x)",
    "all_to_all uneven": "all_to_all(z.chunks(world), x.chunks(world))",
    "copy": "z -> x",
    "fill": "fill(x, 1)",
}
REDUCES = {
    "all_reduce": "all_reduce(x, op=op)",
    "reduce": "reduce(x, dst=0, op=op)",
    "reduce_scatter": "reduce_scatter(y, x.chunks(world), op=op)",
    "reduce_scatter_single": "reduce_scatter_single(y, x, op=op)",
    "reduce_scatter uneven": "reduce_scatter(y, x.chunks(world), op=op)",
    "accumulate": "z -> x, op=op",
}
TEXTS = {**MOVES, **REDUCES, "scale": "scale(x, 2)", "barrier": "barrier()"}


def cells() -> list[str]:
    """Every cell, as operation/dtype/reduce op."""
    named = [f"{name}/{dtype}" for name in (*MOVES, "scale") for dtype in DTYPES]
    named += [f"{name}/{dtype}/{op}" for name in REDUCES for dtype in DTYPES for op in ReduceOp]
    said = ("avg", "premul_sum")  # arrows have neither, in the language
    return [c for c in named if not (c[:10] == "accumulate" and c.endswith(said))] + ["barrier"]


def program_of(cell: str, world: int, rank: int) -> Program:
    """A rank's program of a cell; x, y and z are as long as it needs them."""
    name, dtype, op = [*cell.split("/"), "", ""][:3]
    op = "premul_sum(2)" if op == ReduceOp.PREMUL_SUM else op or "sum"
    text = TEXTS[name].replace("op=op", f"op={op}").replace("\n", "\n    ")
    n = 2 * world + (name in UNEVEN)
    z = "world * share(n, world, rank)" if name == "all_to_all uneven" else "n"
    y = "share(n, world, rank)"
    head = f"pattern main(x: {dtype}[n], y: {dtype}[{y}], z: {dtype}[{z}], n = {n}):"
    head = head if dtype else "pattern main():"
    source = Source(f"{head}\n    {text}\n", "cell.cl")
    return build(load_module(source).symbols["main"], world, ranks=[rank])


def values(dtype: str, rank: int, name: str, length: int) -> torch.Tensor:
    """Small powers of two, which all dtypes hold, different on each rank and in each tensor."""
    shift = "xyz".index(name) + 2 * rank
    powers = torch.tensor([1 << (i * (i + 1) // 2 + shift) % 3 for i in range(length)])
    if dtype == "bool":
        return powers > 1
    if dtype.startswith("complex"):
        return (powers + 1j * powers.flip(0)).to(getattr(torch, dtype))
    return powers.to(getattr(torch, dtype))


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """In a dtype in which torch computes all that has a meaning."""
    if tensor.dtype == torch.bool:
        return tensor
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.to(torch.float64 if tensor.is_floating_point() else torch.int64)


def combined(tensors: list[torch.Tensor], op: str) -> torch.Tensor:
    """What a reduce op makes of tensors; raises RuntimeError where it has no meaning."""
    flags = tensors[0].dtype == torch.bool
    functions: dict[str, Callable[[Any, Any], torch.Tensor]] = {
        "sum": torch.logical_or if flags else torch.add,
        "product": torch.mul,
        "min": torch.minimum,
        "max": torch.maximum,
        "band": torch.bitwise_and,
        "bor": torch.bitwise_or,
        "bxor": torch.bitwise_xor,
    }
    if op == ReduceOp.AVG:
        return combined(tensors, "sum") / len(tensors)
    if op == ReduceOp.PREMUL_SUM:
        return combined([2 * tensor for tensor in tensors], "sum")
    return reduce(functions[op], tensors)


def expected(cell: str, given: list[dict[str, torch.Tensor]], rank: int) -> dict[str, torch.Tensor]:
    """What some of this rank's tensors hold at the end."""
    name, _, op = [*cell.split("/"), "", ""][:3]
    if name == "barrier":
        return {}
    name, world = name.removesuffix(" uneven").removesuffix("_single"), len(given)
    x = [wide(tensors["x"]) for tensors in given]
    y = [wide(tensors["y"]) for tensors in given]
    mine = {"x": x[rank], "z": wide(given[rank]["z"])}
    match name:
        case "send":
            return {"x": x[0] if rank == 1 else x[rank]}
        case "broadcast":
            return {"x": x[0]}
        case "scatter":
            return {"y": x[0].tensor_split(world)[rank]}
        case "gather":
            return {"z": torch.cat(y)} if rank == 0 else {}
        case "all_gather":
            return {"z": torch.cat(y)}
        case "all_to_all":
            return {"z": torch.cat([t.tensor_split(world)[rank] for t in x])}
        case "all_reduce":
            return {"x": combined(x, op)}
        case "reduce":
            return {"x": combined(x, op)} if rank == 0 else {}
        case "reduce_scatter":
            return {"y": combined(x, op).tensor_split(world)[rank]}
        case "accumulate":
            return {"x": combined([mine["x"], mine["z"]], op)}
        case "copy":
            return {"x": mine["z"]}
        case "fill":
            return {"x": torch.ones_like(mine["x"])}
        case _:
            return {"x": 2 * mine["x"]} if name == "scale" else {}


def outcome(cell: str, rank: int, world: int) -> str:
    """Run a cell on this rank: "yes", "wrong", or "refused: " and the error's first line."""
    programs = [program_of(cell, world, r) for r in range(world)]
    program = programs[rank]
    given = [
        {n: values(cell.split("/")[1], r, n, shape_of(v)[0]) for n, v in p.tensors.items()}
        for r, p in enumerate(programs)
    ]
    memory = Memory(program, torch.device("cpu"))
    tensors = {name: tensor.clone() for name, tensor in given[rank].items()}
    memory.adopt(tensors)
    try:
        for row in program.rows_of(rank):
            if program.site_of(row).kind.is_local:
                bind_local(program, row, memory, {})()
            else:
                bind_communication(program, row, memory, dist.group.WORLD, "gloo").run()  # pyright: ignore
    except Exception as error:
        first = str(error).split("\n")[0]
        return f"refused: {first[:200] or type(error).__name__}"
    try:
        wanted = expected(cell, given, rank)
    except RuntimeError:  # torch itself sees no meaning in it
        return "wrong"
    right = all(same(wide(tensors[name]), value) for name, value in wanted.items())
    return "yes" if right else "wrong"


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether values are equal, but for the rounding of a mean of three in a short float."""
    exact = not (other.is_floating_point() or other.is_complex())
    return torch.equal(one, other) if exact else torch.allclose(one, other, rtol=0.01, atol=0)


def tabled(cell: str, backend: str = "gloo") -> bool:
    """Whether the table says yes to a cell."""
    name, dtype, op = [*cell.split("/"), "", ""][:3]
    backend = "torch" if name in LOCAL else backend
    operation = called(name.removesuffix(" uneven"), backend, uneven=name in UNEVEN)
    return supports(backend, operation, dtype or None, op or None)


def serve(folder: str, rank: int, world: int, first: int, chosen: list[str]) -> None:
    """Run cells from the first one on until ranks fare differently; write what became of each."""
    torch.set_num_threads(1)
    store: Any = dist.FileStore(f"{folder}/cells-{first}", world)  # pyright: ignore
    store.set_timeout(timedelta(seconds=2 * LIMIT_S))
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/group-{first}",
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=LIMIT_S),
    )
    for number in range(first, len(chosen)):
        said = outcome(chosen[number], rank, world)
        with Path(f"{folder}/{rank}").open("a", encoding="utf-8") as file:
            file.write(json.dumps([number, said]) + "\n")
        store.set(f"{number}/{rank}", said.split(":")[0])
        others = {store.get(f"{number}/{r}") for r in range(world)}
        if len(others) > 1:
            os._exit(0)
    dist.barrier()
    os._exit(0)  # a group that saw errors may not end


def measure(chosen: list[str], world: int = WORLD) -> dict[str, str]:
    """What became of each cell, from ranks in processes of their own."""
    told: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        first = 0
        while first < len(chosen):
            _run_ranks(folder, world, first, chosen)
            results = [_read(Path(folder, str(rank))) for rank in range(world)]
            seen = max(max(result, default=first - 1) for result in results)
            for number in range(first, max(seen, first) + 1):
                said = [result.get(number, "died") for result in results]
                classes = {text.split(":")[0] for text in said}
                alike = len(classes) == 1 and said[0] != "died"
                told[chosen[number]] = said[0] if alike else f"astray: {', '.join(said)}"
            first = max(seen, first) + 1
    return told


def _run_ranks(folder: str, world: int, first: int, chosen: list[str]) -> None:
    ranks = [
        subprocess.Popen(
            [sys.executable, __file__, "--rank", str(rank), folder, str(world), str(first)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for rank in range(world)
    ]
    try:
        for rank in ranks:
            assert rank.stdin is not None
            rank.stdin.write(json.dumps(chosen))
            rank.stdin.close()
        for rank in ranks:
            rank.wait(timeout=DEADLINE_S)
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


def _read(path: Path) -> dict[int, str]:
    if not path.exists():
        return {}
    return dict(map(json.loads, path.read_text("utf-8").splitlines()))


def report(told: dict[str, str], world: int, backend: str = "gloo") -> str:
    """The dtypes of each operation and op by what became of them, and what the table has wrong."""
    lines = [f"torch {torch.__version__}, {world} ranks, {len(told)} cells"]
    rows: dict[str, dict[str, list[str]]] = {}
    for cell, said in told.items():
        name, dtype, op = [*cell.split("/"), "", ""][:3]
        kind = said.split(":")[0]
        rows.setdefault(f"{name} {op}".strip(), {}).setdefault(kind, []).append(dtype)
    for row, kinds in rows.items():
        lines += [f"{row:32} {kind:8} {' '.join(dtypes)}" for kind, dtypes in kinds.items()]
    wrong = [cell for cell, said in told.items() if (said == "yes") != tabled(cell, backend)]
    return "\n".join([*lines, f"cells that the table has wrong: {', '.join(wrong) or 'none'}"])


def main(arguments: list[str]) -> None:
    """A rank, or the whole measurement."""
    if arguments[:1] == ["--rank"]:
        rank, folder, ranks, first = arguments[1:]
        serve(folder, int(rank), int(ranks), int(first), json.loads(sys.stdin.read()))
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", type=int, default=WORLD)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("cells", nargs="*")
    given = parser.parse_args(arguments)
    told = measure(given.cells or cells(), given.world)
    print(json.dumps(told) if given.json else report(told, given.world))


if __name__ == "__main__":
    main(sys.argv[1:])
