"""Dumps from files: pickles as torch writes them, or the JSON that it can be asked for."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commlang.errors import UsageError
from commlang.explain.decode import Malformed, decode
from commlang.explain.pickled import NotPlain, read_plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlang.explain.dump import Dump

LARGEST = 64 << 20
"""Bytes that a dump may have; one of 2,000 operations, torch's default, has less than a million."""
MOST_FILES = 100_000
_NAME = re.compile(r"(?P<prefix>.*?)(?P<rank>\d{1,7})(?P<suffix>\.(json|pkl|pickle|bin))?")


def read_dumps(paths: Iterable[str]) -> dict[int, Dump]:
    """The dumps in these files and folders by rank; raises UsageError for what is none."""
    files = [file for path in paths for file in _files(path)]
    found: dict[int, Dump] = {}
    for file, rank in files:
        if rank in found:
            raise UsageError(
                f"{found[rank].path} and {file} are both of rank {rank}; name the dumps of one "
                "moment only"
            )
        found[rank] = read_dump(file, rank)
    return dict(sorted(found.items()))


def read_dump(path: str, rank: int) -> Dump:
    """One rank's dump; raises UsageError, naming the file, for anything else."""
    data = _bytes(path)
    try:
        return decode(_plain(data), rank, path)
    except NotPlain as error:
        raise UsageError(f"{path} is no Flight Recorder dump: {error}") from None
    except Malformed as error:
        raise UsageError(f"{path} is no Flight Recorder dump as torch writes it: {error}") from None


def rank_of(path: str) -> int | None:
    """The rank that a file's name ends in, as in `nccl_trace_rank_3`, or None."""
    matched = _NAME.fullmatch(os.path.basename(path))  # noqa: PTH119 (keeps `..` as written)
    return int(matched["rank"]) if matched else None


def _files(path: str) -> list[tuple[str, int]]:
    if Path(path).is_dir():
        return _below(path)
    rank = rank_of(path)
    if rank is None:
        raise UsageError(
            f"{path}: which rank's dump is it? torch ends its name in the rank, as in "
            "nccl_trace_rank_3"
        )
    return [(path, rank)]


def _below(folder: str) -> list[tuple[str, int]]:
    """The dumps of a folder, which have one prefix and end in their ranks."""
    found: dict[str, list[tuple[str, int]]] = {}
    with os.scandir(folder) as entries:
        names = sorted(e.name for e in entries if e.is_file() and not e.name.startswith("."))
    for name in names[:MOST_FILES]:
        matched = _NAME.fullmatch(name)
        if matched:
            kind = f"{matched['prefix']}N{matched['suffix'] or ''}"
            found.setdefault(kind, []).append((str(Path(folder) / name), int(matched["rank"])))
    if not found:
        raise UsageError(
            f"there is no dump in {folder}; torch ends their names in the rank, as in "
            "nccl_trace_rank_3"
        )
    if len(found) > 1:
        kinds = ", ".join(sorted(found)[:5])
        raise UsageError(f"{folder} has files of several kinds ({kinds}); name the dumps' files")
    return next(iter(found.values()))


def _bytes(path: str) -> bytes:
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', error)}") from None
    if len(data) > LARGEST:
        raise UsageError(f"{path} is larger than a dump may be, {LARGEST >> 20} MiB")
    return data


def _plain(data: bytes) -> Any:
    if not data:
        raise NotPlain("it is empty")
    if data.lstrip()[:1] != b"{":
        return read_plain(data)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NotPlain(f"it begins like JSON, but is none: {error}") from None
