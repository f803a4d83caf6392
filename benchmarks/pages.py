"""How fast large messages arrive, by where in a page the tensors start that receive them.

    python benchmarks/pages.py > benchmarks/pages.txt

Two gloo ranks exchange messages of one size, both ways at once. malloc lets a tensor that gets
memory of its own start 64 bytes past a page; commlang/execute/allocate.py says what comes of that.
"""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from commlang.execute.diagnosis import Narrator
from commlang.execute.launch import launch
from commlang.execute.options import LaunchOptions

if TYPE_CHECKING:
    from commlang.execute.rank import RankContext

SIZES = (64 << 10, 1 << 20, 16 << 20)
PLACES = (0, 64, 128, 256, 1024, 4032)
ROUNDS = 60
PAGE = 4096

_dist: Any = dist  # whose functions have no complete types


def tensor_at(size: int, place: int) -> torch.Tensor:
    """`size` bytes from `place` bytes past a page, written to once."""
    room = torch.zeros(size + 2 * PAGE, dtype=torch.uint8).fill_(1)
    start = -room.data_ptr() % PAGE + place
    return room[start : start + size]


def exchange(sent: torch.Tensor, got: torch.Tensor, peer: int) -> float:
    _dist.barrier()
    start = time.perf_counter()
    works = [_dist.isend(sent, peer), _dist.irecv(got, peer)]
    for work in works:
        work.wait()
    return time.perf_counter() - start


def rank_main(context: RankContext) -> list[tuple[int, list[float]]]:
    """Per size the seconds for each place, in turn, of the slower rank."""
    found: list[tuple[int, list[float]]] = []
    with context.join(backend="gloo", device="cpu") as world:
        peer = 1 - world.rank
        for size in SIZES:
            sent, got = tensor_at(size, 0), [tensor_at(size, place) for place in PLACES]
            mine = [[exchange(sent, tensor, peer) for tensor in got] for _ in range(ROUNDS)]
            context.position[0] += 1
            both: list[Any] = [None, None]
            _dist.all_gather_object(both, mine)
            slower = [
                [max(pair) for pair in zip(*turn, strict=True)] for turn in zip(*both, strict=True)
            ]
            found.append((size, [median(times) for times in zip(*slower, strict=True)]))
    return found


def main() -> None:
    found = launch(rank_main, (), LaunchOptions(nproc_per_node=2), narrator=Narrator())[0]
    print(f"# torch {torch.__version__}; ms for both ways, medians of {ROUNDS}, by the place that")
    print("# the receiving tensor starts at, in bytes past a page")
    print(f"{'bytes':>10}" + "".join(f"{place:>9}" for place in PLACES))
    for size, times in found:
        print(f"{size:>10}" + "".join(f"{1e3 * seconds:>9.2f}" for seconds in times))


if __name__ == "__main__":
    main()
