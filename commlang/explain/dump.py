"""What a Flight Recorder dump says: the operations that one rank issued, group by group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

WORLD = "default_pg"
"""How torch describes the group that init_process_group makes."""
OURS = "commlang:"
"""What the descriptions of groups begin with that an Executor made."""

_DTYPES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}
Sizes = tuple[tuple[int, ...], ...]


@record
class Frame:
    """A line of Python that led to a call."""

    path: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} in {self.function}"


@record
class GroupKey:
    """A process group: torch's name of it, and its ranks of the world where the dump lists them.

    Groups that were split off another may share a name; their ranks tell them apart.
    """

    name: str
    ranks: tuple[int, ...] | None


@record
class Entry:
    """One operation that a rank issued.

    `number` counts the group's collectives, or for a message its messages; `order` the operations
    of all groups. `source` and `target` are places in the group. `ended` is False while the
    operation waits or runs. NCCL tells whether it succeeded; gloo's may also have failed, which
    `sure` says. `frames` begin with the innermost.
    """

    rank: int
    order: int
    group: GroupKey
    number: int
    logical: int
    name: str
    backend: str
    is_message: bool
    source: int
    target: int
    inputs: Sizes
    outputs: Sizes
    input_dtypes: tuple[str, ...]
    output_dtypes: tuple[str, ...]
    ended: bool
    sure: bool
    timed_out: bool
    created_ns: int
    frames: tuple[Frame, ...]

    @property
    def data(self) -> str:
        """`float32[4]`, or `float32[4] -> [2, 4]`, as far as it was recorded."""
        before, after = _told(self.inputs), _told(self.outputs)
        dtypes = [_DTYPES.get(d, d.lower()) for d in (*self.input_dtypes, *self.output_dtypes)]
        dtype = "/".join(dict.fromkeys(dtypes))
        if not before and not after:
            return ""
        if before == after or not after:
            return f"{dtype}{before}"
        return f"{dtype}{before} -> {after}" if before else f"{dtype} -> {after}"

    @property
    def call(self) -> str:
        """What it is, with its data: `all_reduce of float32[4]`."""
        route = f" {self.source}->{self.target}" if self.is_message else ""
        return f"{self.name}{route} of {self.data}" if self.data else f"{self.name}{route}"

    @property
    def site(self) -> Frame | None:
        """The innermost line that is neither torch's nor commlang's own, if frames were kept."""
        for own in (("/torch/", "/commlang/execute/"), ("/torch/",)):
            for frame in self.frames:
                if not any(part in frame.path for part in own):
                    return frame
        return None


def _told(sizes: Sizes) -> str:
    shown = [str(list(size)) for size in sizes[:4]]
    return ", ".join(shown) + (", …" if len(sizes) > 4 else "")


@record
class Group:
    """A group as one rank's dump knows it; `ranks` is None where the dump does not list them."""

    key: GroupKey
    description: str
    last: int
    """The number of the last collective or operation that was issued, -1 if the dump lacks it."""


@record
class Dump:
    """What one rank's dump says.

    `entries` are in the order of issue. `lost` tells that some are not there: older ones were
    overwritten, or only those that had not ended were written.
    """

    rank: int
    path: str
    version: str
    entries: tuple[Entry, ...]
    groups: Mapping[GroupKey, Group]
    nameless: tuple[int, ...]
    """The ranks of a group of which the dump does not say which it is."""
    lost: bool

    @property
    def backends(self) -> tuple[str, ...]:
        """The backends of its operations, by name."""
        return tuple(sorted({entry.backend for entry in self.entries}))
