"""What each rank does in the tests of Executors on a DeviceMesh; as in `executor_work`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

import commlang
from tests.execute.executor_work import RING, joined, said

if TYPE_CHECKING:
    from pathlib import Path

GRID = """\
pattern grid(x: float32[n], y: float32[n], n = 2, a = 2, b = 2):
    mesh dp = a, tp = b
    all_reduce(x, group=tp)
    all_reduce(y, group=dp)
"""
BOTH = "pattern both(x: float32[2]):\n    mesh dp = world\n    all_reduce(x, group=dp)\n"
NAMES = ("dp", "tp")


def known_groups() -> int:
    return len(dist.distributed_c10d._world.pg_map)  # pyright: ignore[reportPrivateUsage]


def used(executor: commlang.Executor, *axes: tuple[str, Any]) -> list[bool]:
    """Whether the axes' groups are the very ones given."""
    communicators = executor._communicators  # pyright: ignore[reportPrivateUsage]
    assert communicators is not None
    held: dict[int, Any] = communicators._groups  # pyright: ignore[reportPrivateUsage]
    plan, rank = executor.plan, executor.rank
    return [
        [held[n] for n, g in enumerate(plan.groups) if g.label == label and rank in g.ranks]
        == [group]
        for label, group in axes
    ]


def run(executor: commlang.Executor, rank: int) -> list[float]:
    """What each tensor of the plan holds in the end, if all start as the rank."""
    made = executor.run()
    tensors = {name: torch.full_like(tensor, float(rank)) for name, tensor in made.items()}
    executor.run(**tensors)
    assert all((t == t[0]).all() for t in tensors.values())
    return [t[0].item() for t in tensors.values()]


def scenarios(rank: int, size: int, path: Path) -> list[Any]:
    """All of them on ranks that have met once, which is what takes the time."""
    with joined(rank, size, path):
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=NAMES)
        found = [binds(mesh, rank), one_at_a_time(mesh, rank), refusals(mesh)]
        plan = commlang.loads(GRID).plan(world=4)
    return [*found, said(lambda: commlang.Executor(plan, group=mesh))]


def binds(mesh: DeviceMesh, rank: int) -> list[Any]:
    """On the whole mesh, on one dim, on a part of two dims; and with an axis of all ranks."""
    found: list[Any] = []
    tp, dp = mesh.get_group("tp"), mesh.get_group("dp")
    before = known_groups()
    grid = commlang.loads(GRID).plan(world=4)
    for _ in range(2):
        with commlang.Executor(grid, group=mesh) as ex:
            groups = used(ex, ("grid.tp", tp), ("grid.dp", dp), ("world", dist.group.WORLD))
            found.append([groups, run(ex, rank), known_groups() - before])
    with commlang.Executor(commlang.loads(RING).plan(world=2), group=mesh["tp"]) as ex:
        found.append([ex.group is tp, run(ex, rank), known_groups() - before])
    with commlang.Executor(commlang.loads(RING).plan(world=4), group=mesh) as ex:
        found.append([ex.group is dist.group.WORLD, run(ex, rank), known_groups() - before])
    found.append(on_a_part(rank))
    found.append(apart_from_all(rank))
    return found


def on_a_part(rank: int) -> list[Any]:
    """On two dims of three, whose ranks have a group once the program has flattened them."""
    cube = init_device_mesh("cpu", (2, 1, 2), mesh_dim_names=("pp", *NAMES))
    plan = commlang.loads(GRID).plan(world=2, a=1)
    refused = said(lambda: commlang.Executor(plan, group=cube[NAMES]))
    flat = cube[NAMES]._flatten().get_group()
    before = known_groups()
    with commlang.Executor(plan, group=cube[NAMES]) as ex:
        groups = used(ex, ("grid.tp", cube.get_group("tp")), ("world", flat))
        return [refused, groups, run(ex, rank), known_groups() - before]


def apart_from_all(rank: int) -> list[Any]:
    """An axis of all ranks: the group of all ranks is lent once, for a pattern was checked so."""
    line = init_device_mesh("cpu", (4,), mesh_dim_names=("dp",))
    found: list[Any] = []
    for text in (BOTH, BOTH + "    all_reduce(x)\n"):
        before = known_groups()
        with commlang.Executor(commlang.loads(text).plan(world=4), group=line) as ex:
            shared = used(ex, ("both.dp", dist.group.WORLD))
            found.append([shared, run(ex, rank), known_groups() - before])
    return found


def refusals(mesh: DeviceMesh) -> list[str]:
    """Meshes that do not fit a pattern's; in the end the mesh's own groups are gone."""
    nameless = init_device_mesh("cpu", (2, 2))
    crossed = DeviceMesh("cpu", [[0, 2], [1, 3]], mesh_dim_names=NAMES)
    backwards = DeviceMesh("cpu", [3, 2, 1, 0], mesh_dim_names=("dp",))
    some = DeviceMesh("cpu", [0, 1], mesh_dim_names=("dp",))
    grid, ring = commlang.loads(GRID), commlang.loads(RING)
    turned = commlang.loads(GRID.replace("mesh dp = a, tp = b", "mesh tp = b, dp = a"))
    other = commlang.loads(GRID.replace("mesh dp", "mesh pp").replace("group=dp", "group=pp"))
    cases = [
        (other.plan(world=4), mesh),
        (grid.plan(world=4), nameless),
        (grid.plan(world=4, a=4, b=1), mesh),
        (turned.plan(world=4), mesh),
        (grid.plan(world=8, a=4), mesh),
        (grid.plan(world=4), crossed),
        (ring.plan(world=4), backwards),
    ]
    found = [said(lambda p=p, m=m: commlang.Executor(p, group=m)) for p, m in cases]
    found.append(said(lambda: commlang.Executor(ring.plan(world=2), group=some)))
    ex = commlang.Executor(grid.plan(world=4), group=mesh)
    tp = mesh.get_group("tp")
    dist.destroy_process_group(tp)
    found.append(said(ex.__enter__))
    found.append(said(lambda: commlang.Executor(ring.plan(world=2), group=mesh["tp"])))
    return found


def one_at_a_time(mesh: DeviceMesh, rank: int) -> list[str]:
    """While a plan runs on a mesh, none runs on a group that it uses."""
    text = f"extern also(x: update float32[n])\n\n{GRID}    also(x)\n"
    found: list[str] = []
    with commlang.Executor(commlang.loads(RING).plan(world=2), group=mesh["tp"]) as inner:

        def also(x: torch.Tensor) -> None:
            found.append(said(inner.run))

        plan = commlang.loads(text, "grid").plan(world=4)
        with commlang.Executor(plan, group=mesh, externs={"also": also}) as ex:
            ex.run()
        found.append(said(inner.run))  # and afterwards it may
    return found
