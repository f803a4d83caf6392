"""From a verified program and a machine to the times of all its rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from commlang.errors import UsageError
from commlang.simulate.calls import asked_for, calls_of
from commlang.simulate.kernel import Costs, Sharing
from commlang.simulate.messages import messages_of
from commlang.simulate.noise import Jitter, Straggler, factors
from commlang.simulate.result import Simulation
from commlang.simulate.run import Engine, choose, run
from commlang.simulate.sizes import Bytes, local_work, uncosted
from commlang.simulate.wiring import Wiring, refuse, wire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commlang.program.columns import Array, Program
    from commlang.schedule import Bucket
    from commlang.simulate.calls import Calls
    from commlang.simulate.messages import Messages
    from commlang.simulate.wiring import Wiring
    from commlang.topology import Machine


def simulate(
    program: Program,
    machine: Machine,
    *,
    costs: Mapping[str, float] | None = None,
    stragglers: Sequence[Straggler] = (),
    jitter: float = 0.0,
    seed: int = 0,
    contention: bool = True,
    buckets: Sequence[Bucket] = (),
    algorithms: Mapping[str, str] | None = None,
    eager: int = 0,
    engine: Engine = "auto",
) -> Simulation:
    """When everything of a verified program happens on a machine, rank r on device r.

    `costs` are seconds by the name of an extern or the label of a `compute`; `jitter` is a standard
    deviation as a part of each time; `buckets` are collectives that run as one, as
    `commlang.schedule` finds them; `algorithms` are asked for by name, as {"all_reduce": "ring"};
    messages of up to `eager` bytes leave without waiting for their recv. With `contention`,
    messages and collectives queue for the channels that they share.

    Raises PatternError for a program that deadlocks or in which something is never met, and
    UsageError for a machine that is too small and arguments that make no sense.
    """
    machine = machine.for_world(program.world)
    given, chosen = dict(costs or {}), asked_for(algorithms or {})
    slow, noise = factors(stragglers, program.world), Jitter(jitter, seed)
    _check(given, eager)
    engine = choose(engine, len(program))
    fast = engine == "numba"
    sizes = Bytes(program, fast=fast)
    with ThreadPoolExecutor(1) as aside:  # neither needs the other, and numba lets both run
        priced = aside.submit(local_work, program, machine, given, sizes)
        wiring, work = wire(program, fast=fast), priced.result()
    if stragglers:
        work *= slow[program.rank]
    messages = messages_of(program, machine, wiring, sizes, apart=bool(noise))
    calls = calls_of(
        program,
        machine,
        wiring,
        sizes,
        algorithms=chosen,
        contention=contention,
        buckets=buckets,
    )
    prices = _prices(wiring, messages, calls, work, slow, noise, eager)
    sharing = _sharing(machine, messages, calls, contention)
    clock = run(wiring, prices, sharing, engine)
    if np.isnan(clock.begin.min(initial=0.0)):
        refuse(program)
    return Simulation(
        program, machine, wiring, prices, clock, messages, calls, uncosted(program, given)
    )


def _check(costs: Mapping[str, float], eager: int) -> None:
    for name, seconds in costs.items():
        if not 0 <= seconds < float("inf"):
            raise UsageError(f"cost of `{name}`: {seconds} is no duration of 0 or more")
    if not 0 <= eager < float("inf"):
        raise UsageError(f"eager is a number of bytes, 0 or more, not {eager}")


def _prices(
    wiring: Wiring,
    messages: Messages,
    calls: Calls,
    work: Array,
    slow: Array,
    noise: Jitter,
    eager: int,
) -> Costs:
    """Durations by LogGP: o + L + (k - 1) G, and o again for the receiver."""
    pairs, pair = messages.pairs, messages.pair
    issue = (pairs.overhead * slow[messages.src])[pair]
    receipt = (pairs.overhead * slow[messages.dst])[pair]
    long = np.maximum(messages.bytes - 1, 0) * pairs.pace[pair]
    return Costs(
        work=noise.on(work, np.arange(len(work)) if noise else work),
        lot=messages.lot,
        issue=issue,
        flight=issue + noise.on(pairs.latency[pair] + long, wiring.send),
        receipt=receipt,
        occupy=pairs.gap[pair] + long,
        eager=messages.bytes <= eager if eager else np.zeros(0, dtype=np.bool_),
        seconds=noise.on(calls.seconds, wiring.member[wiring.first[:-1]]),
    )


def _sharing(machine: Machine, messages: Messages, calls: Calls, on: bool) -> Sharing:
    ints, floats = np.zeros(0, dtype=np.int64), np.zeros(0)
    if not on:
        nothing = (ints, ints, ints, floats, floats, floats, ints, ints, ints, floats, floats)
        return Sharing(False, 1, *nothing, floats)
    pairs, patterns = messages.pairs, calls.patterns
    sizes = [len(p.resource) for p in patterns]
    return Sharing(
        on=True,
        width=int(np.diff(pairs.pointer).max(initial=0)) + 1,
        route=messages.pair,
        at=pairs.pointer.astype(np.int64),
        hop=pairs.resource.astype(np.int64),
        gap=pairs.gap[messages.pair],
        body=np.maximum(messages.bytes - 1, 0).astype(np.float64),
        pace=1.0 / machine.capacities,
        pattern=calls.pattern,
        uses=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        used=np.concatenate([ints, *(p.resource for p in patterns)]),
        share=np.concatenate([floats, *(p.share for p in patterns)]),
        volume=calls.bytes,
        tail=calls.alpha,
    )
