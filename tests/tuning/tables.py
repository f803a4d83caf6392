"""Tables of `commlang tune`, made up."""

from __future__ import annotations

from importlib.metadata import version

from commlang.tuning.table import Host, Row, Table, Times

SMALL, LARGE = 1 << 10, 1 << 20


def times(milliseconds: float) -> Times:
    return Times.of([milliseconds / 1e3] * 3)


def table(backend: str = "gloo", torch: str | None = None) -> Table:
    """At 4 ranks the star is fast on little and the tree on much; at 3 ranks nothing is faster."""
    rows = (
        _row(4, SMALL, own=10, star=2, tree=5),
        _row(4, LARGE, own=10, star=30, tree=8),
        _row(3, SMALL, own=10, star=9.5, tree=11),
    )
    return Table(
        torch=torch or version("torch"),
        collective="all_reduce",
        backend=backend,
        device="cpu",
        dtype="float32",
        host=Host(cpu="made up", cpus=2, python="3.11"),
        rows=rows,
    )


def _row(world: int, size: int, *, own: float, star: float, tree: float) -> Row:
    found = {"all_reduce": own, "star_all_reduce": star, "tree_all_reduce": tree}
    return Row(world=world, bytes=size, times={name: times(ms) for name, ms in found.items()})
