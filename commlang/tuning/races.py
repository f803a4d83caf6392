"""Plans of patterns that do the same, at one size each: what `commlang tune` lets race."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commlang.checks import check_program
from commlang.diagnostics import Severity
from commlang.errors import PatternError, UsageError
from commlang.expand.run import parameter_names
from commlang.plan import Plan, make_plan
from commlang.program import build
from commlang.records import record
from commlang.tuning.candidates import candidate, candidates, largest_tensor, reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlang.diagnostics import Diagnostic
    from commlang.resolve.modules import Definition
    from commlang.transports import Target

SIZE = "n"
"""The parameter that says how large the tensors are."""


@record
class Race:
    """Plans by pattern, the backend's own first; `bytes` are those of the largest tensor."""

    world: int
    bytes: int
    plans: dict[str, Plan]


def races(
    collective: str,
    names: Sequence[str],
    world: int,
    sizes: Sequence[int],
    dtype: str,
    target: Target,
) -> tuple[list[Race], dict[str, str]]:
    """A race for each size, and the patterns that take no part, with the reason.

    Without `names` all of the library's take part. `sizes` are in bytes and met as nearly as n can
    be a multiple of the world; those that come to the same n are one. Raises UsageError for a
    collective without a size, or a pattern that does not do the same, and PatternError if the
    backend's own cannot run on the target.
    """
    own = reference(collective)
    if not {SIZE, "dtype"} <= set(parameter_names(own.node)):
        raise UsageError(f"`{collective}` has no size to tune for")
    found = {name: candidate(name, collective) for name in names or candidates(collective)}
    if not found:
        raise UsageError(f"no other pattern of the library does what `{collective}` does")
    least = {SIZE: world, "dtype": dtype}
    faults = _faults(own, world, least, target)
    if faults:
        raise PatternError(faults)
    refused: dict[str, str] = {}
    for name, definition in list(found.items()):
        faults = _faults(definition, world, least, target)
        if faults:
            refused[name] = faults[0].message
            del found[name]
    everyone = {collective: own, **found}
    per = _bytes(own, world, least) / world
    numbers = dict.fromkeys(max(int(size / per) // world, 1) * world for size in sizes)
    return [_race(everyone, world, {SIZE: n, "dtype": dtype}) for n in numbers], refused


def _race(everyone: dict[str, Definition], world: int, values: dict[str, Any]) -> Race:
    plans = {name: make_plan(found, world, values) for name, found in everyone.items()}
    own = next(iter(everyone.values()))
    return Race(world, _bytes(own, world, values), plans)


def _bytes(definition: Definition, world: int, values: dict[str, Any]) -> int:
    largest = largest_tensor(build(definition, world, values))
    assert largest is not None, "what has a dtype has a tensor"
    return largest[1]


def _faults(
    definition: Definition, world: int, values: dict[str, Any], target: Target
) -> list[Diagnostic]:
    """Why a pattern should not run there."""
    try:
        found = check_program(build(definition, world, values), target)
    except PatternError as error:
        return list(error.diagnostics)
    return [d for d in found if d.severity is not Severity.ADVICE]
