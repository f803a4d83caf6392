"""The file of a trace: Chrome's trace events, with what the reader needs in `otherData`.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (the format),
https://perfetto.dev/docs/getting-started/other-formats#chrome-json-format (what Perfetto takes).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from commlang.expand.values import Op
from commlang.schedule import Bucket, Chunk
from commlang.verify.values import format_value
from commlang.version import __version__

if TYPE_CHECKING:
    from commlang.program import Program

VERSION = 1
_LONGEST = 200
SHA = "SHA-256 "
"""Begins what stands for a parameter's text that is longer than that."""
Count = Annotated[int, Field(ge=0, lt=1 << 40)]
"""Far more than there is of anything, and few enough for columns of 64 bits."""
Micro = Annotated[float, Field(gt=-1e15, lt=1e15)]
"""30 years, so that nanoseconds fit into 64 bits."""


class ClockFact(BaseModel):
    """How a host's clock was put on that of rank 0's host; seconds."""

    model_config = ConfigDict(allow_inf_nan=False)

    ranks: list[int]
    offset: float
    error: float


class Header(BaseModel):
    """What a trace is of; `rows` tells one order of a program's rows from another."""

    version: Literal[1] = VERSION
    commlang: str = __version__
    torch: str = ""
    pattern: str
    path: str
    digest: str
    world: int = Field(ge=1, le=1 << 20)
    parameters: dict[str, str]
    fingerprint: str
    rows: str
    passes: tuple[str, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    buckets: tuple[Bucket, ...] = ()
    backend: str = ""
    device: str = ""
    hosts: list[str] = []
    runs: Count
    kept: Count
    cut: str | None = None
    clocks: list[ClockFact] = []
    clock_method: str = ""


class SliceArguments(BaseModel):
    """What the reader needs of a slice; `rows` are rows of the program that ran."""

    iteration: Count
    act: Literal["run", "start", "join", "batch"]
    row: Count
    rows: list[Count]


class Slice(BaseModel):
    """A complete event (`"ph": "X"`) of one action; times in microseconds."""

    model_config = ConfigDict(allow_inf_nan=False)

    pid: Count
    ts: Micro
    dur: Micro = Field(ge=0)
    args: SliceArguments


def parameters_of(program: Program) -> dict[str, str]:
    """Parameters as text, long ones as a digest."""
    return {name: _text(value) for name, value in program.parameters.items()}


def _text(value: Any) -> str:
    plain = isinstance(value, Op) and value.factor is None
    text = str(value.op) if plain else format_value(value)
    if len(text) <= _LONGEST:
        return text
    return f"{SHA}{hashlib.sha256(text.encode()).hexdigest()}"


def rows_of(program: Program) -> str:
    """A digest over the order of the program's rows: what each is, and whom it concerns."""
    place: list[int] = [site.span.start for site in program.sites]
    digest = hashlib.sha256()
    for column in (program.rank, program.kind, program.peer, program.group, program.tag):
        digest.update(column.astype("<i8").tobytes())
    digest.update(np.array(place, dtype="<i8")[program.site].tobytes())
    return digest.hexdigest()[:32]
