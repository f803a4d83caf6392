"""A DeviceMesh in the place of a process group: the group of its ranks, and those of its axes.

A plan's ranks are those of the mesh in row-major order, as a pattern's own `mesh` lays them out.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

from commlang.errors import UsageError
from commlang.execute.communicators import backend_of
from commlang.syntax import ast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commlang.plan import Plan

Where = dist.ProcessGroup | DeviceMesh

_ALIVE: dict[dist.ProcessGroup, Any] = cast("Any", dist.distributed_c10d)._world.pg_map
"""torch's own list of groups, looked up once: every run of a plan asks."""


class Axes:
    """A mesh's groups, by the numbers of the plan's groups whose place they take.

    None stands for a group that this rank is no member of: other ranks have it.
    """

    def __init__(self, groups: Mapping[int, dist.ProcessGroup | None]) -> None:
        # Weak, as the Executor's own: no group may outlive destroy_process_group.
        self._refs = {n: None if g is None else weakref.ref(g) for n, g in groups.items()}

    def groups(self) -> dict[int, dist.ProcessGroup | None]:
        """The groups; raises UsageError if one was destroyed."""
        found = {n: None if ref is None else ref() for n, ref in self._refs.items()}
        if any(self._refs[n] and not (g and is_alive(g)) for n, g in found.items()):
            raise UsageError("a process group of the DeviceMesh was destroyed; make another mesh")
        return found


def is_alive(group: dist.ProcessGroup) -> bool:
    """Whether a group was not destroyed, which a mesh that still holds it does not show."""
    return group in _ALIVE


def checked_group(plan: Plan, group: Where | int | None) -> dist.ProcessGroup:
    """The process group that a plan is to run on; raises UsageError if it cannot run there."""
    if not dist.is_initialized():
        raise UsageError(
            "torch.distributed is not initialised; call init_process_group first, or use "
            "`with commlang.process_group():`"
        )
    if isinstance(group, DeviceMesh):
        if group.size() != plan.world:
            have = f"the DeviceMesh {described(group)} has {group.size()}"
            raise UsageError(f"the plan is for {plan.world} ranks, {have}")
        return group_of(group)
    chosen = group if group is not None else dist.group.WORLD
    if not isinstance(chosen, dist.ProcessGroup) or dist.get_rank(chosen) < 0:
        raise UsageError("this rank is not a member of the group, so it makes no Executor on it")
    size = dist.get_world_size(chosen)
    if size != plan.world:
        raise UsageError(f"the plan is for {plan.world} ranks, the process group has {size}")
    return chosen


def group_of(where: Where) -> dist.ProcessGroup:
    """The group that has a mesh's ranks, in row-major order; a group stands for itself.

    That is the group of a mesh with one dim; else the world, or a flattened mesh that the program
    has made. Raises UsageError if there is none, or this rank is not in the mesh.
    """
    if isinstance(where, dist.ProcessGroup):
        return where
    if where.get_coordinate() is None:
        raise UsageError(
            f"this rank is not in the DeviceMesh {described(where)}, so it makes no Executor on it"
        )
    ranks: list[int] = cast("Any", where.mesh).flatten().tolist()
    for group in _groups_of_all(where):
        if group is not None and dist.get_process_group_ranks(group) == ranks:
            return group
    raise UsageError(_no_group(where, ranks))


def device_of_mesh(mesh: DeviceMesh) -> torch.device:
    """The device that a mesh is of: the current one if there are several."""
    kind = mesh.device_type
    return torch.device(kind, torch.cuda.current_device()) if kind == "cuda" else torch.device(kind)


def described(mesh: DeviceMesh) -> str:
    """`(dp = 2, tp = 4)`, or `(2 x 4)` if its dims have no names."""
    names, shape = mesh.mesh_dim_names, mesh.shape
    if names is None:
        return f"({' x '.join(map(str, shape))})"
    return f"({', '.join(f'{n} = {size}' for n, size in zip(names, shape, strict=True))})"


def axes_of(plan: Plan, mesh: DeviceMesh, base: dist.ProcessGroup, device: torch.device) -> Axes:
    """The mesh's groups for the axes that the plan's pattern declares, which go by their names.

    A mesh of one dim with another name than all axes is only its group, `base`. Where the group of
    all ranks is also that of an axis, and the pattern uses both, the axis gets another one, since
    the plan was checked for communicators apart. Raises UsageError that names both sides where an
    axis is missing, or has another size, other ranks or another backend.
    """
    declared = _declared(plan)
    names = mesh.mesh_dim_names or ()
    if not declared or (mesh.ndim == 1 and not set(names) & set(declared)):
        return Axes({})
    _check_shape(plan, declared, mesh)
    found: dict[int, dist.ProcessGroup | None] = {}
    taken = {base} if plan.groups[0].used else set[dist.ProcessGroup]()
    for axis in declared:
        group = _group(mesh, axis)
        _check_group(axis, group, _along(mesh, axis), base, device)
        if group in taken:
            continue
        taken.add(group)
        for number, ranks in _numbered(plan, axis).items():
            if ranks in _along(mesh, axis):
                found[number] = group if dist.get_rank(base) in ranks else None
    return Axes(found)


def _groups_of_all(mesh: DeviceMesh) -> list[dist.ProcessGroup | None]:
    """Groups that may have all ranks of a mesh."""
    if mesh.ndim == 1:
        return [_group(mesh)]
    flattened: dict[str, DeviceMesh] = cast("Any", mesh)._get_root_mesh()._flatten_mapping
    return [dist.group.WORLD, *map(_group, flattened.values())]


def _group(mesh: DeviceMesh, axis: str | None = None) -> dist.ProcessGroup:
    """A mesh's own group; raises UsageError if it was destroyed."""
    try:
        return mesh.get_group(axis)
    except RuntimeError:  # torch finds no group of that name
        raise UsageError(
            f"a process group of the DeviceMesh {described(mesh)} was destroyed; make another mesh"
        ) from None


def _no_group(mesh: DeviceMesh, ranks: list[int]) -> str:
    told = f"the DeviceMesh {described(mesh)} has the ranks {ranks} in row-major order"
    if mesh.ndim == 1:
        group = dist.get_process_group_ranks(_group(mesh))
        return f"{told}, its process group {group}; make the mesh with its ranks in that order"
    if ranks != sorted(ranks):
        return (
            f"{told}, and a process group that torch makes for them has {sorted(ranks)}; "
            "make the mesh with its ranks in that order, or give one of its dims"
        )
    return (
        f"{told}, and no process group has these; let all ranks of the mesh that it is a part of "
        "call its `_flatten()` before, or give one of its dims"
    )


def _declared(plan: Plan) -> list[str]:
    """The axes of the meshes that stand in the plan's own pattern."""
    meshes = (s for s in plan.definition.node.body if isinstance(s, ast.Mesh))
    return [axis.name for mesh in meshes for axis in mesh.axes]


def _numbered(plan: Plan, axis: str) -> dict[int, tuple[int, ...]]:
    """The ranks of a plan's groups along an axis, by number."""
    label = f"{plan.pattern}.{axis}"
    return {n: group.ranks for n, group in enumerate(plan.groups) if group.label == label}


def _along(mesh: DeviceMesh, axis: str) -> list[tuple[int, ...]]:
    """The places, in row-major order, of a mesh's groups along an axis."""
    dim = (mesh.mesh_dim_names or ()).index(axis)
    places = np.moveaxis(np.arange(mesh.size()).reshape(mesh.shape), dim, -1)
    return [tuple(row) for row in places.reshape(-1, mesh.shape[dim]).tolist()]


def _check_shape(plan: Plan, declared: Sequence[str], mesh: DeviceMesh) -> None:
    """Refuse a mesh in which an axis is missing, or has another size or place than in the plan."""
    sizes = {axis: len(next(iter(_numbered(plan, axis).values()))) for axis in declared}
    told = ", ".join(f"{axis} = {size}" for axis, size in sizes.items())
    both = f"`{plan.pattern}` has the mesh ({told}), the DeviceMesh is {described(mesh)}"
    names = mesh.mesh_dim_names
    missing = [axis for axis in declared if axis not in (names or ())]
    if missing:
        give = ", ".join(f'"{axis}"' for axis in declared)
        raise UsageError(f"{both}: it has no axis `{missing[0]}`; use mesh_dim_names=({give})")
    for axis in declared:
        rows = _along(mesh, axis)
        if len(rows[0]) != sizes[axis]:
            raise UsageError(f"{both}: axis `{axis}` has another size; plan for {len(rows[0])}")
        planned = set(_numbered(plan, axis).values())
        if not planned.issuperset(rows):
            theirs, mine = next(row for row in rows if row not in planned), min(planned)
            raise UsageError(
                f"{both}: axis `{axis}` joins ranks {list(mine)} there and {list(theirs)} here; "
                "have the axes in one order"
            )


def _check_group(
    axis: str,
    group: dist.ProcessGroup,
    rows: Sequence[tuple[int, ...]],
    base: dist.ProcessGroup,
    device: torch.device,
) -> None:
    """Refuse a mesh's own group with other ranks than the mesh says, or on another backend."""
    rank, members = dist.get_rank(base), dist.get_process_group_ranks(base)
    row = next(row for row in rows if rank in row)
    wanted, found = [members[place] for place in row], dist.get_process_group_ranks(group)
    if wanted != found:
        raise UsageError(
            f"the plan has axis `{axis}` on ranks {wanted}, the DeviceMesh's process group for it "
            f"is of ranks {found}; make the mesh with its ranks in that order"
        )
    ours, theirs = backend_of(base, device), backend_of(group, device)
    if ours != theirs:
        raise UsageError(
            f"axis `{axis}` of the DeviceMesh is on {theirs} for {device.type}, the group of all "
            f"its ranks on {ours}; a plan runs on one backend"
        )
