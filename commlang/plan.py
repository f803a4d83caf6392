"""Plans: what was checked, as small versioned data from which each rank expands its own part."""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from commlang.checks import check_program
from commlang.errors import CommlangError, PatternError, UsageError
from commlang.expand.groups import GroupEntry
from commlang.expand.run import MAX_EVENTS
from commlang.expand.values import Op
from commlang.program import Program, build
from commlang.resolve.check import check_all
from commlang.resolve.modules import Definition, load_module
from commlang.schedule import Action, Bucket, Chunk, Schedule, Scheduled, apply, fused, linearise
from commlang.schedule import schedule as make_schedule
from commlang.source import Source
from commlang.transports import RENDEZVOUS, Backend, Target
from commlang.verify.refusal import is_sure, refuse
from commlang.verify.values import format_value, parse_value
from commlang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

VERSION = 1
_SHOWN = 200
_ALLOW = "Executor(…, allow_hazards=True) runs it all the same"
_SILENCE = "a comment, `# commlang: ignore[CODE] reason`, allows it"
PROOFS = ("matched", "agreeing collectives", "deadlock-free under rendezvous")


def proofs_of(target: Target) -> tuple[str, ...]:
    """What a program in which nothing was found for a target is proven to be."""
    if target.backend is not Backend.NCCL:
        return PROOFS
    return (*PROOFS, f"deadlock-free on nccl ({target.nccl_init} communicators)")


class PlanGroup(BaseModel):
    """One communicator: its name in the pattern and its ranks, in order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: str
    ranks: tuple[int, ...]
    used: bool


class PlanTensor(BaseModel):
    """A tensor that the caller brings: its dtype and shape."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dtype: str
    shape: tuple[int, ...]


class Plan(BaseModel):
    """A checked pattern for given parameters and a given world.

    It names its source by path and digest, or holds the text of one that is in no file; a rank
    expands its own rows from the source. `fingerprint` is equal on two ranks exactly if they would
    run the same plan. A plan is pickled as its JSON.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = VERSION
    commlang: str = __version__
    pattern: str
    path: str
    text: str | None = None
    digest: str
    world: int = Field(ge=1)
    values: dict[str, Any]
    parameters: dict[str, Any]
    tensors: dict[str, PlanTensor]
    groups: tuple[PlanGroup, ...]
    events: int
    max_events: int
    passes: tuple[str, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    buckets: tuple[Bucket, ...] = ()
    proofs: tuple[str, ...] = PROOFS

    _definition: Definition | None = PrivateAttr(default=None)
    _programs: dict[int, Program] = PrivateAttr(default_factory=dict[int, Any])

    @model_validator(mode="after")
    def _groups_are_of_the_world(self) -> Plan:
        for group in self.groups:
            inside = all(0 <= rank < self.world for rank in group.ranks)
            if not inside or len(set(group.ranks)) < len(group.ranks):
                raise ValueError(f"group `{group.label}` is not of {self.world} ranks, each once")
        return self

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all that decides what the ranks do; where the source lies does not."""
        fields = self.model_dump(mode="json", exclude={"path", "text"})
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()

    @property
    def definition(self) -> Definition:
        """The pattern itself, loaded if need be; raises CommlangError if it is another by now."""
        if self._definition is None:
            if self.commlang != __version__:
                raise CommlangError(
                    f"the plan is of commlang {self.commlang}, this is {__version__}; plan it again"
                )
            module = load_module(self._source())
            if module.digest() != self.digest:
                raise CommlangError(
                    f"{self.path} or a file that it imports is not the one that was planned; "
                    "plan it again"
                )
            self._definition = module.symbols[self.pattern]
        return self._definition

    def _source(self) -> Source:
        return Source.read(self.path) if self.text is None else Source(self.text, self.path)

    @property
    def subgroups(self) -> tuple[PlanGroup, ...]:
        """The communicators that are made for the plan: all that it uses but the world."""
        return tuple(group for group in self.groups[1:] if group.used)

    def summary(self) -> dict[str, str]:
        """What tells this plan from another one, for people; in the order of what to say first."""
        tensors = (f"{n}: {t.dtype}{list(t.shape)}" for n, t in self.tensors.items())
        return {
            "pattern": self.pattern,
            "world": str(self.world),
            "parameters": _short(", ".join(f"{n} = {v}" for n, v in self.parameters.items())),
            "tensors": _short(", ".join(tensors)),
            "text of digest": self.digest[:16],
            "plan of fingerprint": self.fingerprint[:16],
        }

    @property
    def given(self) -> dict[str, Any]:
        """The parameters that were set, as the evaluator takes them."""
        return _decode(self.values)

    def program(self, rank: int | None = None) -> Program:
        """The rows of one rank, or of all, in the order in which the host comes to them."""
        if rank is not None and not 0 <= rank < self.world:
            raise UsageError(f"rank {rank} is outside the plan's world of {self.world}")
        key = -1 if rank is None else rank
        if key not in self._programs:
            written = build(
                self.definition,
                self.world,
                self.given,
                shapes={n: (t.dtype, t.shape) for n, t in self.tensors.items()},
                ranks=None if rank is None else [rank],
                groups=[GroupEntry(g.label, g.ranks) for g in self.groups[1:]],
                max_events=self.max_events,
            )
            self._programs[key] = apply(written, self.passes, self.chunks)
        return self._programs[key]

    def actions(self, rank: int, program: Program | None = None) -> list[Action]:
        """What a rank's host does, in order; of `program` if one that has the rank is at hand."""
        known = program or self.program(rank)
        return fused(known, rank, linearise(known, rank, self.program), self.buckets)

    def check_for(self, target: Target, *, allow_hazards: bool = False) -> None:
        """Raise PatternError for what forbids to run the plan's order on a target.

        Nothing is done if the plan was proven for it.
        """
        if not set(proofs_of(target)) <= set(self.proofs):
            found = check_program(self.program(), target)
            refuse(found, target, allow_hazards=allow_hazards, hint=_ALLOW)

    def forget(self) -> None:
        """Drop expanded programs; they are expanded again when needed."""
        self._programs.clear()

    def to_json(self) -> str:
        """The plan as JSON, with its fingerprint."""
        fields = {**self.model_dump(mode="json"), "fingerprint": self.fingerprint}
        return json.dumps(fields, indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Plan:
        """Read a plan; raises UsageError for anything that is no plan of this version.

        That includes a plan that was edited: what it says was proven of something else.
        """
        try:
            fields: Any = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f"not a plan of version {VERSION}: the file: Invalid JSON: {error}"
            ) from None
        stated: object = None
        if isinstance(fields, dict):
            stated = cast("dict[str, object]", fields).pop("fingerprint", None)
        try:
            plan = cls.model_validate_json(json.dumps(fields))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the file"
            raise UsageError(f"not a plan of version {VERSION}: {where}: {first['msg']}") from None
        if plan.fingerprint != stated:
            raise UsageError(
                "the plan was edited: it does not have the fingerprint that it states, so what it "
                "says was not proven; plan it again"
            )
        return plan

    def __reduce__(self) -> tuple[Callable[[str], Plan], tuple[str]]:
        return Plan.from_json, (self.to_json(),)


def make_plan(
    definition: Definition,
    world: int,
    values: Mapping[str, Any] | None = None,
    *,
    shapes: Mapping[str, tuple[str, tuple[int, ...]]] | None = None,
    max_events: int = MAX_EVENTS,
    schedule: Schedule = "overlap",
    target: Target = RENDEZVOUS,
) -> Plan:
    """Check a pattern for a world and plan it; raises PatternError with all that is wrong.

    For NCCL that includes what may hang there.
    """
    if world < 1:
        raise UsageError(f"a world of {world} ranks; there must be at least 1")
    found = check_all(definition.module)
    if found:
        raise PatternError(found)
    program = build(definition, world, values, shapes=shapes, max_events=max_events)
    found = check_program(program, target)
    refuse(found, target, allow_hazards=False, hint=_SILENCE)
    proofs = proofs_of(target if is_sure(found) else RENDEZVOUS)
    return plan_of(make_schedule(program, target, schedule), max_events, proofs)


def plan_of(
    scheduled: Scheduled, max_events: int = MAX_EVENTS, proofs: tuple[str, ...] = PROOFS
) -> Plan:
    """The plan of a program that has been checked, which is where the proofs come from."""
    program = scheduled.program
    used = set(program.group.tolist()) if len(program) else set[int]()
    source = program.definition.module.source
    on_disk = Path(source.path).is_file()
    plan = Plan(
        pattern=program.name,
        path=str(Path(source.path).resolve()) if on_disk else source.path,
        text=None if on_disk else source.text,
        digest=program.definition.module.digest(),
        world=program.world,
        values=_encode(program.values),
        parameters=_encode(program.parameters),
        tensors={n: PlanTensor(dtype=d, shape=s) for n, (d, s) in program.shapes.items()},
        groups=tuple(
            PlanGroup(label=e.label, ranks=e.members, used=i in used)
            for i, e in enumerate(program.groups.entries)
        ),
        events=len(program),
        max_events=max_events,
        passes=scheduled.passes,
        chunks=scheduled.chunks,
        buckets=scheduled.buckets,
        proofs=proofs,
    )
    plan._definition = program.definition  # pyright: ignore[reportPrivateUsage]
    plan._programs[-1] = program  # pyright: ignore[reportPrivateUsage]
    return plan


def _encode(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    """A value as JSON: fractions as "1/2", ops and dtypes by name, tables as lists."""
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, Fraction | float):
        return "{}/{}".format(*value.as_integer_ratio())
    if isinstance(value, Op):
        return format_value(value) if value.factor is not None else str(value.op)
    if hasattr(value, "array"):
        return value.array[value.prefix].tolist() if value.prefix else value.array.tolist()
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def _decode(values: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `_encode`; names stay names, of ops and of dtypes."""
    return {name: _value(name, value) for name, value in values.items()}


def _value(name: str, value: Any) -> Any:
    if isinstance(value, str) and ("/" in value or "(" in value):
        return parse_value(value, name)
    return value


def _short(text: str) -> str:
    """At most some hundred characters; of longer texts the digest tells whether they differ."""
    if len(text) <= _SHOWN:
        return text or "none"
    return f"{text[:_SHOWN]}… (SHA-256 {hashlib.sha256(text.encode()).hexdigest()[:16]})"
