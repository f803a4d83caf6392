"""From the data of a dump to operations; the fields are those of torch's FlightRecorder.hpp.

https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/distributed/c10d/FlightRecorderDetail.hpp

gloo's dumps differ from NCCL's. They list the ranks of one group, that was made last, and not its
name. They record no send and no recv, which only `op_id` counts. Every state in them is
"scheduled", and `retired` alone says that an operation has ended, be it well or with an error.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from commlang.explain.dump import Dump, Entry, Frame, Group, GroupKey

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_ENTRIES = 200_000
_MOST_TENSORS = 10_000
_MOST_FRAMES = 200
_LONGEST = 400
_NAME = re.compile(r"(\w{1,40}):(\w{1,80})(?: (\d{1,7})(->|<-)(\d{1,7}))?")
_END = "coalesced"


class Malformed(ValueError):
    """Data that no dump has; the text says what, for a sentence with the file."""


def decode(data: Any, rank: int, path: str) -> Dump:
    """What a dump's data say; raises Malformed.

    A dump says nothing of its rank but, with NCCL, which ranks are in its groups.
    """
    top = _dict(data, "it")
    version = _text(top.get("version", ""), "version")
    raw = _list(top.get("entries", []), "entries")
    if "version" not in top or len(raw) > MOST_ENTRIES:
        reason = "it has no version" if "version" not in top else "it has too many entries"
        raise Malformed(reason)
    config = _ranks(_dict(top.get("pg_config", {}), "pg_config"))
    frames: dict[int, Frame] = {}
    raw = sorted((_dict(e, "an entry") for e in raw), key=_order)
    found = [_entry(e, rank, config, frames) for e in raw]
    entries = _ended_together(found)
    gaps = any(b.order - a.order > 1 for a, b in pairwise(found))
    lost = gaps or (bool(entries) and entries[0].order > 0)
    status = _dict(top.get("pg_status", {}), "pg_status")
    groups = _groups(raw, found, config, status)
    nameless = config.get("", ("", None))[1] or ()
    return Dump(rank, path, version, tuple(entries), groups, nameless, lost)


def _order(raw: dict[str, Any]) -> int:
    return _whole(raw.get("record_id"), "record_id")


def _ranks(config: Mapping[str, Any]) -> dict[str, tuple[str, tuple[int, ...] | None]]:
    """Per group's name its description and its ranks, None if they are not listed."""
    found: dict[str, tuple[str, tuple[int, ...] | None]] = {}
    for name, raw in config.items():
        group = _dict(raw, "a group of pg_config")
        text = group.get("ranks", "[]")
        try:
            listed: Any = json.loads(text) if isinstance(text, str) else text
        except ValueError:
            raise Malformed("the ranks of a group are no list") from None
        ranks = tuple(_whole(r, "a group's rank") for r in _list(listed, "ranks"))
        found[name] = (_text(group.get("desc", ""), "desc"), ranks or None)
    return found


def _entry(
    raw: dict[str, Any],
    rank: int,
    config: Mapping[str, tuple[str, tuple[int, ...] | None]],
    frames: dict[int, Frame],
) -> Entry:
    backend, name, source, target = _named(raw.get("profiling_name"))
    group, _ = _group_of(raw)
    is_message = raw.get("is_p2p") is True
    state, retired = raw.get("state"), raw.get("retired") is True
    completed = state == "completed"
    # gloo sets no other state than "scheduled".
    quiet = backend == "gloo" and not completed
    return Entry(
        rank=rank,
        order=_whole(raw.get("record_id"), "record_id"),
        group=GroupKey(group, config.get(group, ("", None))[1]),
        number=_whole(raw.get("p2p_seq_id" if is_message else "collective_seq_id"), "seq_id"),
        logical=_whole(raw.get("op_id", 0), "op_id"),
        name=name,
        backend=backend,
        is_message=is_message,
        source=source,
        target=target,
        inputs=_sizes(raw.get("input_sizes")),
        outputs=_sizes(raw.get("output_sizes")),
        input_dtypes=_texts(raw.get("input_dtypes")),
        output_dtypes=_texts(raw.get("output_dtypes")),
        ended=completed or (quiet and retired),
        sure=completed,
        timed_out=retired and not completed and not quiet,
        created_ns=_whole(raw.get("time_created_ns", 0), "time_created_ns"),
        frames=_frames(raw.get("frames", []), frames),
    )


def _named(value: Any) -> tuple[str, str, int, int]:
    """Backend, operation, source and target: `nccl:send 0->1`, `nccl:recv 1<-0`, `gloo:barrier`."""
    matched = _NAME.fullmatch(_text(value, "profiling_name"))
    if matched is None:
        raise Malformed(f"`{_text(value, 'profiling_name')[:80]}` is no operation")
    backend, name, left, arrow, right = matched.groups()
    if arrow is None:
        return backend, name, -1, -1
    source, target = (left, right) if arrow == "->" else (right, left)
    return backend, name, int(source), int(target)


def _ended_together(entries: list[Entry]) -> list[Entry]:
    """Operations of one launch take the state of the entry that stands for it, their last.

    torch records no state of those, and gives all of them the number of the launch.
    """
    ends = {(e.group, e.is_message, e.number): e for e in entries if e.name.endswith(_END)}
    if not ends:
        return entries
    found: list[Entry] = []
    for entry in entries:
        end = ends.get((entry.group, entry.is_message, entry.number))
        if end is None:
            found.append(entry)
        elif end is not entry:
            found.append(_with_state(entry, end))
        elif not entry.is_message:
            found.append(entry)
    return found


def _with_state(entry: Entry, end: Entry) -> Entry:
    from dataclasses import replace

    return replace(entry, ended=end.ended, sure=end.sure, timed_out=end.timed_out)


def _groups(
    raw: list[Any],
    entries: list[Entry],
    config: Mapping[str, tuple[str, tuple[int, ...] | None]],
    status: Mapping[str, Any],
) -> dict[GroupKey, Group]:
    """Every group that the dump knows of: those with entries, and those that are listed."""
    found: dict[GroupKey, Group] = {}
    for name, (description, ranks) in config.items():
        if name and ranks is not None:
            key = GroupKey(name, ranks)
            found[key] = Group(key, description, -1)
    for data, entry in zip(raw, entries, strict=True):
        key = entry.group
        if key not in found or found[key].last < 0:
            number = _dict(status.get(str(data.get("pg_id")), {}), "a group of pg_status")
            last = _count(number.get("last_enqueued_collective", -1))
            found[key] = Group(key, _group_of(data)[1], last)
    return found


def _count(value: Any) -> int:
    """A number, which JSON has as text."""
    if isinstance(value, str) and len(value) < 20 and value.removeprefix("-").isdecimal():
        value = int(value)
    return _whole(value, "a number of pg_status")


def _group_of(raw: dict[str, Any]) -> tuple[str, str]:
    pair = raw.get("process_group")
    if not isinstance(pair, tuple | list) or len(cast("list[Any]", pair)) != 2:
        raise Malformed("an entry has no process_group")
    name, description = cast("list[Any]", pair)
    return _text(name, "a group's name"), _text(description, "a group's description")


def _frames(raw: Any, known: dict[int, Frame]) -> tuple[Frame, ...]:
    """Frames are shared in the data, and so they are here; those objects live as long as this."""
    found: list[Frame] = []
    for data in _list(raw, "frames")[:_MOST_FRAMES]:
        frame = known.get(id(data))
        if frame is None:
            fields = _dict(data, "a frame")
            line = _whole(fields.get("line", 0), "line")
            texts = (_text(fields.get(key, ""), key) for key in ("filename", "name"))
            path, function = texts
            frame = known[id(data)] = Frame(path, line, function)
        found.append(frame)
    return tuple(found)


def _sizes(raw: Any) -> tuple[tuple[int, ...], ...]:
    listed = _list(raw, "sizes")[:_MOST_TENSORS]
    return tuple(tuple(_whole(n, "a size") for n in _list(s, "a size")[:64]) for s in listed)


def _texts(raw: Any) -> tuple[str, ...]:
    return tuple(_text(t, "a dtype") for t in _list(raw or [], "dtypes")[:_MOST_TENSORS])


def _dict(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Malformed(f"{name} is no dict")
    return cast("dict[str, Any]", value)


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise Malformed(f"{name} is no list")
    return cast("list[Any]", value)


def _text(value: Any, name: str) -> str:
    """Text for messages: of bounded length, without anything that a terminal would obey."""
    if not isinstance(value, str):
        raise Malformed(f"{name} is no text")
    return "".join(c if c.isprintable() else "�" for c in value[:_LONGEST])


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 64:
        raise Malformed(f"{name} is no whole number")
    return value
