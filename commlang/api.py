"""commlang in Python programs: load a pattern, check it, plan it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from commlang.checks import check_program
from commlang.diagnostics import did_you_mean
from commlang.dtypes import DTYPES
from commlang.errors import PatternError, UsageError
from commlang.expand.binding import is_tensor
from commlang.expand.run import MAX_EVENTS
from commlang.program import Program, build
from commlang.resolve.check import check_all
from commlang.resolve.modules import load_module
from commlang.source import Source
from commlang.transports import RENDEZVOUS, Backend, NcclInit, Target
from commlang.verify import (
    choose_pattern,
    default_world,
    locate_source,
    parse_value,
    preset_values,
    split_target,
)

if TYPE_CHECKING:
    from commlang.diagnostics import Diagnostic
    from commlang.plan import Plan
    from commlang.resolve.modules import Definition
    from commlang.schedule import Schedule


class TensorLike(Protocol):
    """What has a dtype and a shape: a torch.Tensor, on whatever device."""

    @property
    def dtype(self) -> Any: ...
    @property
    def shape(self) -> Any: ...


Tensors = Mapping[str, TensorLike | tuple[str, tuple[int, ...]]]
"""Tensors that the caller brings, or their dtype names and shapes, by parameter."""

AUTO = "auto:"
"""What comes before the name of a table, where the name of a pattern is asked for."""

_Shapes = dict[str, tuple[str, tuple[int, ...]]]


class Pattern:
    """One pattern of a file, with everything that it imports.

    `check`, `program` and `plan` take the world and the pattern's parameters by name: ints, bools,
    Fractions or floats, nested lists for tables, dtypes of torch or by name, reduce ops by name,
    or a text as one writes it after `--set` (`"4Ki"`, `"premul_sum(1/2)"`). Without `world` that
    of the preset is taken, else that of the mesh, else the smallest usual one which the pattern
    accepts. They raise UsageError for what is no world, parameter or preset.
    """

    def __init__(self, definition: Definition) -> None:
        self.definition = definition

    def __repr__(self) -> str:
        return f"<Pattern {self.name} of {self.definition.module.source.path}>"

    @property
    def name(self) -> str:
        """The pattern's name."""
        return self.definition.node.name

    @property
    def tensors(self) -> list[str]:
        """The names of its tensor parameters, in order."""
        return [p.target.id for p in self.definition.node.params if is_tensor(p)]

    @property
    def parameters(self) -> list[str]:
        """The names of its other parameters, in order."""
        return [p.target.id for p in self.definition.node.params if not is_tensor(p)]

    @property
    def doc(self) -> str:
        """The pattern's docstring, or an empty string."""
        return self.definition.node.doc.value if self.definition.node.doc else ""

    def check(
        self,
        /,
        world: int | None = None,
        *,
        preset: str | None = None,
        backend: str | None = None,
        nccl_init: str = "lazy",
        **values: Any,
    ) -> list[Diagnostic]:
        """All findings for a world and parameters; empty if the pattern is sound there.

        `backend` is "gloo", "nccl" or "mpi"; without it, what all of them honour decides, and what
        would hang on one only is a warning. `nccl_init` is "eager" if the process group was given
        a `device_id`.
        """
        target = _target(backend, nccl_init)
        found = check_all(self.definition.module)
        if found:
            return found
        try:
            return check_program(self.program(world, preset=preset, **values), target)
        except PatternError as error:
            return list(error.diagnostics)

    def program(
        self, /, world: int | None = None, *, preset: str | None = None, **values: Any
    ) -> Program:
        """The expanded program, not checked; raises PatternError for faults on the way."""
        world, values = self._choose(world, preset, values)
        return build(self.definition, world, values)

    def plan(
        self,
        /,
        world: int | None = None,
        *,
        preset: str | None = None,
        tensors: Tensors | None = None,
        max_events: int = MAX_EVENTS,
        schedule: Schedule = "overlap",
        backend: str | None = None,
        nccl_init: str = "lazy",
        **values: Any,
    ) -> Plan:
        """Check the pattern and plan it; raises PatternError with all its diagnostics.

        `tensors` says what the caller brings: parameters that stand in shapes are bound by it, and
        the plan takes tensors of these shapes on every rank. `schedule` is "overlap", to start
        operations early, wait for them late, make one of small collectives that are neighbours and
        pieces of large operations that pass data on, or "program", to run what is written.
        `backend` and `nccl_init` are as for `check`; without a backend the plan is for any, and an
        Executor on NCCL checks it for that.
        """
        from commlang.plan import make_plan

        world, values = self._choose(world, preset, values)
        shapes = {name: _shape(name, tensor) for name, tensor in (tensors or {}).items()}
        return make_plan(
            self.definition,
            world,
            values,
            shapes=shapes,
            max_events=max_events,
            schedule=schedule,
            target=_target(backend, nccl_init) if backend else RENDEZVOUS,
        )

    def _choose(
        self, world: int | None, preset: str | None, values: Mapping[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        if type(world) not in (int, type(None)):
            raise UsageError(f"world={world!r}: a world is a number of ranks")
        if world is not None and world < 1:
            raise UsageError(f"a world of {world} ranks; there must be at least 1")
        chosen = {name: _value(name, value) for name, value in values.items()}
        if preset is not None:
            world, preset_set = preset_values(self.definition, preset, world)
            chosen = {**preset_set, **chosen}
        return world if world is not None else default_world(self.definition, chosen), chosen


def load(path: str | Path, pattern: str | None = None) -> Pattern:
    """Load a pattern file, or a pattern of the shipped library by name.

    `pattern` says which one of the file, and so does `FILE:PATTERN`; `auto:FILE` is `auto` of a
    table. Raises UsageError if the file cannot be read or leaves open which pattern is meant, and
    PatternError if it does not parse or an import fails.
    """
    if isinstance(path, str) and path.startswith(AUTO):
        from commlang.automatic import auto

        return auto(path.removeprefix(AUTO))
    file, name = (str(path), None) if isinstance(path, Path) else split_target(path)
    return Pattern(choose_pattern(load_module(locate_source(file)), pattern or name))


def loads(text: str, pattern: str | None = None) -> Pattern:
    """Load a pattern from text; imports are relative to the working directory."""
    return Pattern(choose_pattern(load_module(Source(text)), pattern))


def _target(backend: str | None, nccl_init: str) -> Target:
    if backend is not None and backend not in list(Backend):
        raise UsageError(f"backend={backend!r}: there are {', '.join(Backend)}")
    if nccl_init not in list(NcclInit):
        raise UsageError(f"nccl_init={nccl_init!r}: write 'lazy' or 'eager'")
    return Target(Backend(backend) if backend else None, NcclInit(nccl_init))


def _value(name: str, value: Any) -> Any:
    """A parameter's value from what Python programs have at hand."""
    if isinstance(value, str):
        return value if value.isidentifier() else parse_value(value, name)
    return _dtype_name(value) if _is_torch_dtype(value) else value


def _shape(name: str, tensor: Any) -> tuple[str, tuple[int, ...]]:
    """The dtype name and the shape of a tensor, or of a pair of them."""
    try:
        dtype, shape = (tensor.dtype, tensor.shape) if hasattr(tensor, "dtype") else tensor
        dims = tuple(int(dim) for dim in shape)
    except (TypeError, ValueError):
        raise UsageError(
            f"tensors[{name!r}] is {tensor!r}; give a tensor, or a pair as in ('float32', (4, 8))"
        ) from None
    known = _dtype_name(dtype)
    if known not in DTYPES:
        hint = did_you_mean(known, DTYPES) or "give a dtype of torch"
        raise UsageError(f"tensors[{name!r}]: `{known}` is no dtype; {hint}")
    if min(dims, default=0) < 0:
        raise UsageError(f"tensors[{name!r}]: shape {list(dims)} has a negative dim")
    return known, dims


def _dtype_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _is_torch_dtype(value: Any) -> bool:
    """Asked without torch, which is not imported for checking and planning."""
    return type(value).__module__ == "torch" and type(value).__name__ == "dtype"
