"""Tables of `commlang tune`: how long patterns took that do the same, by world and size."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from commlang.errors import CommlangError, UsageError
from commlang.records import record
from commlang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

VERSION = 1
MAX_BYTES = 4 << 20
"""Largest file that is read as a table."""
MARGIN = 0.9
"""A pattern is taken if it needs at most this part of the backend's own time: those that are nearer
to each other change places from run to run."""
REACH = 4
"""How many times the largest size that was measured may be exceeded."""

Seconds = Field(gt=0, allow_inf_nan=False)


class Times(BaseModel):
    """Percentiles over turns, of which each counts for its slowest rank; in seconds per call."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    p10: float = Seconds
    p50: float = Seconds
    p90: float = Seconds
    turns: int = Field(ge=1)

    @property
    def mean(self) -> float:
        """Swanson's estimate of the mean from percentiles, by which patterns are compared.

        On few cores times have two modes, milliseconds apart, and medians jump between them from
        run to run; a mean of all turns goes by the worst of them instead.
        Source: Hurst, Brown and Swanson, Swanson's 30-40-30 rule, AAPG Bulletin 2000.
        """
        return 0.3 * self.p10 + 0.4 * self.p50 + 0.3 * self.p90

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Self:
        """The percentiles of at least one duration."""
        if len(seconds) == 1:
            return cls(p10=seconds[0], p50=seconds[0], p90=seconds[0], turns=1)
        cuts = quantiles(seconds, n=10, method="inclusive")
        return cls(p10=cuts[0], p50=cuts[4], p90=cuts[8], turns=len(seconds))


class Row(BaseModel):
    """All patterns on a world of so many ranks; `bytes` are those of the largest tensor."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    world: int = Field(ge=1)
    bytes: int = Field(ge=1)
    times: dict[str, Times]


class Host(BaseModel):
    """Where it was measured; for people, nothing is decided by it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cpu: str
    cpus: int = Field(ge=1)
    python: str


@record
class Choice:
    """Patterns to try in this order before the backend's own, and why."""

    names: tuple[str, ...]
    why: str


class Table(BaseModel):
    """What was measured of a collective, and of the patterns that do the same.

    `times` of each row are by pattern; under the collective's name stand the backend's own, which
    every row has.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = VERSION
    commlang: str = __version__
    torch: str
    collective: str
    backend: str
    device: str
    dtype: str
    host: Host
    rows: tuple[Row, ...]

    @model_validator(mode="after")
    def _own_times(self) -> Self:
        for number, row in enumerate(self.rows):
            if self.collective not in row.times:
                raise ValueError(f"row {number} has no times of `{self.collective}` itself")
        return self

    @classmethod
    def from_json(cls, text: str | bytes, name: str = "the text") -> Self:
        """Read a table; raises UsageError for what is none of this version."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            said = first["msg"].removeprefix("Value error, ")
            raise UsageError(
                f"{name} is no table of `commlang tune`, version {VERSION}: "
                f"{f'{where}: ' if where else ''}{said}"
            ) from None

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a file; raises UsageError if there is none, or it is no table."""
        try:
            with Path(path).open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
        except (OSError, ValueError) as error:
            said = getattr(error, "strerror", None) or error
            raise UsageError(f"cannot read {path}: {said}; `commlang tune` writes tables") from None
        if len(data) > MAX_BYTES:
            raise UsageError(f"{path} is larger than {MAX_BYTES >> 20} MiB; not a table")
        return cls.from_json(data, str(path))

    def write(self, path: str | Path) -> None:
        """Write a file; raises CommlangError if that fails."""
        try:
            Path(path).write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise CommlangError(f"cannot write {path}: {error.strerror}") from None

    @property
    def patterns(self) -> list[str]:
        """The names of all patterns in it but the backend's own."""
        names = dict.fromkeys(name for row in self.rows for name in row.times)
        return [name for name in names if name != self.collective]

    def mismatch(self, backend: str | None, torch: str) -> str | None:
        """Why the table says nothing about a run, or None; `backend` None is not known yet."""
        if backend is not None and family(backend) != family(self.backend):
            return f"it was measured on {self.backend}, and this is {backend}"
        if _minor(torch) != _minor(self.torch):
            return f"it was measured with torch {self.torch}, and this is {torch}"
        return None

    def choose(self, world: int, size: int) -> Choice:
        """What to run on a tensor of `size` bytes: the fastest at the nearest size, by ratio."""
        own, rows = f"`{self.collective}` itself", [r for r in self.rows if r.world == world]
        if not rows:
            worlds = ", ".join(str(w) for w in sorted({row.world for row in self.rows})) or "none"
            return Choice((), f"{own}: {world} ranks were not measured, but {worlds}")
        row = min(rows, key=lambda row: abs(math.log(max(size, 1) / row.bytes)))
        if size > REACH * max(row.bytes for row in rows):
            return Choice((), f"{own}: {size} bytes are far more than were measured ({row.bytes})")
        means = {name: times.mean for name, times in row.times.items()}
        limit = MARGIN * means[self.collective]
        faster = [name for name in means if name != self.collective and means[name] <= limit]
        names = tuple(sorted(faster, key=lambda name: means[name]))
        if not names:
            return Choice((), f"{own}: nothing was clearly faster at {row.bytes} bytes")
        gain = means[self.collective] / means[names[0]]
        return Choice(names, f"`{names[0]}`: {gain:.1f} times as fast at {row.bytes} bytes")


def family(backend: str) -> str:
    """A backend by one name, whoever made it: torch's MPI and that of commlang are alike."""
    return "mpi" if backend in ("mpi", "commlang_mpi") else backend


def _minor(version: str) -> list[str]:
    return version.split("+")[0].split(".")[:2]
