"""NCCL's dumps, made by hand: this machine has no GPU, so no real ones.

Fields and numbering are those of torch 2.13's FlightRecorderDetail.hpp and ProcessGroupNCCL.cpp: a
group's collectives and its messages are counted apart, a batch of messages shares one number and
ends in an entry `nccl:coalesced`, which alone has a state. torch's own analyser reads them
(`test_torch_reads_them_too`).
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Groups = dict[str, tuple[str, list[int]]]
FRAME = {"name": "train", "filename": "train.py", "line": 7}


class Recorder:
    """What one rank of NCCL records; `groups` are name: (description, ranks)."""

    def __init__(self, rank: int, world: int, groups: Groups | None = None) -> None:
        self.rank = rank
        self.groups: Groups = {"0": ("default_pg", list(range(world))), **(groups or {})}
        self.entries: list[dict[str, Any]] = []
        self._counts = {name: [0, 0, 0] for name in self.groups}

    def call(
        self,
        name: str,
        size: int = 4,
        *,
        out: int | None = None,
        group: str = "0",
        state: str = "completed",
        dtype: str = "Float",
        retired: bool | None = None,
    ) -> Recorder:
        """A collective with one tensor of `size` elements, and of `out` if it has two."""
        self._counts[group][0] += 1
        self._add(name, [[size]], [[size if out is None else out]], group, state, dtype, retired)
        return self

    def message(
        self, name: str, peer: int, size: int = 4, *, group: str = "0", state: str = "completed"
    ) -> Recorder:
        """A send or a recv of its own."""
        self._counts[group][1] += 1
        self._add(self._route(name, peer, group), [[size]], [[size]], group, state, is_p2p=True)
        return self

    def batch(self, *messages: tuple[str, int], state: str = "completed") -> Recorder:
        """What batch_isend_irecv makes of messages on the world."""
        self._counts["0"][1] += 1
        for name, peer in messages:
            route = self._route(name, peer, "0")
            self._add(route, [[4]], [[4]], "0", "scheduled", retired=False, is_p2p=True)
        self._add("coalesced", [], [], "0", state, is_p2p=True)
        return self

    def _route(self, name: str, peer: int, group: str) -> str:
        ranks = self.groups[group][1]
        arrow = "->" if name == "send" else "<-"
        return f"{name} {ranks.index(self.rank)}{arrow}{ranks.index(peer)}"

    def _add(
        self,
        name: str,
        inputs: list[list[int]],
        outputs: list[list[int]],
        group: str,
        state: str,
        dtype: str = "Float",
        retired: bool | None = None,
        *,
        is_p2p: bool = False,
    ) -> None:
        counts = self._counts[group]
        counts[2] += 1
        number = len(self.entries)
        entry: dict[str, Any] = {
            "frames": [FRAME],
            "record_id": number,
            "pg_id": list(self.groups).index(group),
            "process_group": (group, self.groups[group][0]),
            "thread_name": "python",
            "thread_id": "1",
            "collective_seq_id": counts[0],
            "p2p_seq_id": counts[1],
            "op_id": counts[2],
            "profiling_name": f"nccl:{name}",
            "time_created_ns": 1_800_000_000_000_000_000 + number,
            "input_sizes": inputs,
            "input_dtypes": [dtype] * len(inputs),
            "output_sizes": outputs,
            "output_dtypes": [dtype] * len(outputs),
            "state": state,
            "time_discovered_started_ns": None if state == "scheduled" else number,
            "time_discovered_completed_ns": number if state == "completed" else None,
            "retired": state == "completed" if retired is None else retired,
            "timeout_ms": 600_000,
            "is_p2p": is_p2p,
        }
        if state == "completed":
            entry["duration_ms"] = 0.25
        self.entries.append(entry)

    def data(self) -> dict[str, Any]:
        """The dump."""
        config = {
            name: {"name": name, "desc": description, "ranks": str(ranks)}
            for name, (description, ranks) in self.groups.items()
        }
        status = {
            str(number): {
                "last_enqueued_collective": self._counts[name][0],
                "last_started_collective": self._counts[name][0],
                "last_completed_collective": -1,
            }
            for number, name in enumerate(self.groups)
        }
        return {
            "version": "2.10",
            "pg_config": config,
            "comm_lib_version": "2.28.9",
            "pg_status": status,
            "entries": self.entries,
        }


def write(folder: Path, ranks: Sequence[Recorder]) -> None:
    """The dumps as files, named as torch names them."""
    for recorder in ranks:
        path = folder / f"nccl_trace_rank_{recorder.rank}"
        path.write_bytes(pickle.dumps(recorder.data(), protocol=2))
