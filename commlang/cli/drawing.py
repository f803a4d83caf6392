"""From the options of `commlang draw` to what is drawn, however wrong the pattern is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commlang.cli.guard import say
from commlang.cli.prepare import parameter_settings
from commlang.diagnostics import Severity
from commlang.errors import PatternError, UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from commlang.checks.deadlock import Wait
    from commlang.diagnostics import Diagnostic
    from commlang.draw import Subject
    from commlang.program import Program
    from commlang.program.timing import Timing
    from commlang.schedule import Scheduled
    from commlang.topology import Machine
    from commlang.trace import Trace

RINGS = ("CL201", "CL220")
"""Findings that tell of a ring of waits under rendezvous semantics."""

TIMED = ("timeline", "graph")
"""Views to which it matters when something happens."""


def subject_of(file: str, given: dict[str, Any]) -> tuple[Subject, bool]:
    """What to draw, and whether the check has found nothing wrong with it.

    Raises PatternError for a pattern that cannot be expanded, and UsageError for the rest.
    """
    from commlang.draw import Subject
    from commlang.schedule import Scheduled

    trace = _trace(given["trace"])
    program = _program(file, given, trace)
    found, ring = _findings(program)
    for finding in found:
        say(finding.render())
    wrong = any(finding.severity is Severity.ERROR for finding in found)
    ranks = ranks_of(given["ranks"], program.world)
    machine = _machine(given["topology"], program.world)
    if wrong:
        say(f"`{program.name}` is drawn all the same, in program order")
        return Subject(program, ranks=ranks, ring=ring, machine=machine), False
    scheduled = Scheduled(program) if trace is not None else _scheduled(program, given["schedule"])
    program = trace.program(program) if trace is not None else scheduled.program
    timed = machine if given["view"] in TIMED else None
    timings, critical = _planned(program, timed, scheduled)
    if trace is not None:
        measured = trace.timing(program)
        timings = (*(timings or (_alongside(program, measured),)), measured)
    return Subject(program, timings, ranks, (), machine, critical), True


def _trace(path: str | None) -> Trace | None:
    if path is None:
        return None
    from commlang.trace import read_trace

    return read_trace(path)


def _program(file: str, given: dict[str, Any], trace: Trace | None) -> Program:
    """The pattern for its world and parameters, those of a trace unless others are asked for."""
    from commlang.program import build
    from commlang.verify import default_world, find_pattern, preset_values

    definition = find_pattern(file)
    values, world = parameter_settings(definition, given["settings"]), given["world"]
    if given["preset"]:
        world, found = preset_values(definition, given["preset"], world)
        values = {**found, **values}
    if trace is not None:
        values = {**_parameters(trace, values), **values}
        world = world or trace.header.world
    if world is None:
        world = default_world(definition, values)
    return build(definition, world, values, max_events=given["max_events"])


def _parameters(trace: Trace, given: Collection[str]) -> dict[str, Any]:
    """The parameters of a trace but for those that are given; long ones it only has digests of."""
    from commlang.trace.format import SHA
    from commlang.verify.values import parse_value

    told = {name: v for name, v in trace.header.parameters.items() if name not in given}
    for name, text in told.items():
        if text.startswith(SHA):
            raise UsageError(
                f"the value of `{name}` is too long for {trace.path}; give --set or --preset as "
                "for the run"
            )
    return {name: parse_value(v, f"{trace.path}: parameter {name}") for name, v in told.items()}


def _findings(program: Program) -> tuple[list[Diagnostic], tuple[Wait, ...]]:
    """What the check says but for contracts, which no picture shows; and the deadlock's waits."""
    from commlang.checks import check_program
    from commlang.checks.facts import gather_facts
    from commlang.checks.ring import from_lowest_rank
    from commlang.checks.selection import Selection
    from commlang.transports import RENDEZVOUS

    found = check_program(program, RENDEZVOUS, Selection(ignore=("CL24", "CL4")))
    found = [finding for finding in found if finding.severity is not Severity.ADVICE]
    if all(finding.code not in RINGS for finding in found):
        return found, ()
    facts = gather_facts(program)
    ring = facts.deadlock.certain or facts.deadlock.possible
    return found, tuple(from_lowest_rank(facts, ring) if ring else ())


def _scheduled(program: Program, wanted: Any) -> Scheduled:
    """The program as `run` orders it, if that is wanted."""
    from commlang.schedule import schedule
    from commlang.transports import PORTABLE

    scheduled = schedule(program, PORTABLE, wanted)
    for why in scheduled.refused:
        say(f"{why} (not applied)")
    return scheduled


def _machine(name: str | None, world: int) -> Machine | None:
    if name is None:
        return None
    from commlang.topology import load_machine

    return load_machine(name).for_world(world)


def _planned(
    program: Program, machine: Machine | None, scheduled: Scheduled
) -> tuple[tuple[Timing, ...], Any]:
    """The times of a simulation, if there is a machine, and the rows of its critical path."""
    if machine is None:
        return (), None
    from commlang.simulate import simulate

    try:
        simulation = simulate(program, machine, buckets=scheduled.buckets)
    except PatternError as error:
        say(f"{error}\nit is drawn in program order")
        return (), None
    return (simulation.timing,), simulation.critical


def _alongside(program: Program, measured: Timing) -> Timing:
    """Program order, its steps as long as makes it last as long as what was measured."""
    import numpy as np

    from commlang.draw.times import program_order
    from commlang.program.matching import match_collectives, match_messages
    from commlang.program.timing import Timing

    steps = program_order(program, match_messages(program), match_collectives(program)).timing
    known = measured.end[~np.isnan(measured.end)]
    if not len(known):
        raise UsageError("the trace has no time of any event of this program")
    step = float(known.max()) / max(float(np.nanmax(steps.end)), 1.0)
    return Timing(steps.start * step, steps.end * step, "program order, all steps equally long")


def ranks_of(text: str | None, world: int) -> Sequence[int] | None:
    """The ranks that `0..3,7` names; raises UsageError for what is none."""
    if text is None:
        return None
    found: set[int] = set()
    for part in text.split(","):
        first, dots, last = (word.strip() for word in part.partition(".."))
        last = last if dots else first
        if not all(w.isascii() and w.isdecimal() and len(w) < 12 for w in (first, last)):
            raise UsageError(f"--ranks {text}: write ranks as in `0..3,7`")
        if not int(first) <= int(last) < world:
            raise UsageError(f"--ranks {text}: ranks go from 0 to {world - 1}, lower ones first")
        found |= set(range(int(first), int(last) + 1))
    return tuple(sorted(found))
