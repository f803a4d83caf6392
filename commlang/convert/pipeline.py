"""A pipeline schedule as a pattern.

Torch runs a lowered schedule action by action: a send or a receive is one `isend` or `irecv`,
without a tag; a computation first waits for what it needs; sends are waited for at the end of the
step. The pattern says the same with `async` and `wait`. `blocking` instead ends each message
before the next action starts. That is how a communicator of NCCL works its queue off, which gloo
can then show.
"""

from __future__ import annotations

import keyword
import re
from pathlib import PurePath
from textwrap import indent, wrap
from typing import TYPE_CHECKING

from commlang.convert.actions import GRADIENT, NONE, Action
from commlang.convert.repeat import Item, Leaf, fold
from commlang.convert.steps import DEFINITIONS, EXTERNS, Steps
from commlang.errors import UsageError
from commlang.operations import OPERATIONS
from commlang.source import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlang.convert.schedule import Schedule

_RESERVED = {
    *(
        "rank",
        "ranks",
        "world",
        "old",
        "true",
        "false",
        "extern",
        "parallel",
        "pattern",
        "sequence",
    ),
    *keyword.kwlist,
    *EXTERNS.values(),
    *OPERATIONS,
}
_WIDTH = 100
_VARIABLES = ("m", "k", "j", "i")


def pipeline_pattern(schedule: Schedule, at: Sequence[int], *, blocking: bool = False) -> str:
    """The text of a `.cl` file in the formatter's layout; `at` is the rank of each stage.

    Raises UsageError if it would be larger than a pattern file may be.
    """
    steps = Steps(at, blocking=blocking)
    text = "\n".join(
        [*_externs(schedule), *_head(schedule, at, blocking=blocking)]
        + [line for rank in range(len(schedule.rows)) for line in _rank(schedule, rank, steps)]
        + [f"    wait({handle})" for handle in steps.handles_of_sends(schedule)]
    )
    if len(text) >= MAX_BYTES:
        raise UsageError(
            f"{schedule.path}: its pattern would be larger than the {MAX_BYTES >> 20} MiB that a "
            "pattern file may have; take fewer micro-batches"
        )
    return f"{text}\n"


def pattern_name(path: str) -> str:
    """The name of the pattern for a file: its own, made a name of the language."""
    name = re.sub(r"\W+", "_", PurePath(path).stem, flags=re.ASCII).strip("_").lower()
    if not name or not name[0].isalpha() or name in _RESERVED:
        name = f"schedule_{name}".rstrip("_")
    return name


def _externs(schedule: Schedule) -> Iterator[str]:
    for act, text in DEFINITIONS.items():
        if schedule.uses(act):
            yield f"{text}\n"


def _head(schedule: Schedule, at: Sequence[int], *, blocking: bool) -> Iterator[str]:
    ranks, stages = len(schedule.rows), schedule.stages
    backward = schedule.uses(*GRADIENT)
    shape = f"bfloat16[{stages}, {schedule.batches}, n]"
    names = ("x", "y", "dy", "dx") if backward else ("x", "y")
    parameters = [*(f"{name}: {shape}" for name in names), "n = 256"]
    name = pattern_name(schedule.path)
    line = f"pattern {name}({', '.join(parameters)}):"
    if len(line) <= _WIDTH:
        yield line
    else:
        yield f"pattern {name}("
        yield from (f"    {parameter}," for parameter in parameters)
        yield "):"
    yield from _docstring(schedule, blocking=blocking, backward=backward)
    yield f'    require world == {ranks}, "the schedule is for {ranks} ranks"'
    if stages > 1:
        yield from _table(at)
        yield f"    ensure x[s] @ at[s] == y[s - 1] @ at[s - 1] for s in range(1, {stages})"
        if backward:
            yield f"    ensure dy[s] @ at[s] == dx[s + 1] @ at[s + 1] for s in range({stages - 1})"
    yield ""


def _docstring(schedule: Schedule, *, blocking: bool, backward: bool) -> Iterator[str]:
    size = (
        f"{_count(schedule.stages, 'stage')} on {_count(len(schedule.rows), 'rank')}, "
        f"{_count(schedule.batches, 'micro-batch')}: the schedule of "
        f"{PurePath(schedule.path).name}."
    )
    gradients = " dy and dx are the gradients of y and x." if backward else ""
    waits = (
        " Each message ends before the next action starts, as on one NCCL communicator."
        if blocking
        else " As in torch, a message runs while others are computed; what a computation needs is"
        " waited for before it, and the sends at the end."
    )
    body = "x[s, m] is the input of stage s for micro-batch m, y[s, m] its output."
    body += f"{gradients}{waits}"
    yield f'    """{size[0].upper()}{size[1:]}'
    yield ""
    yield from (indent(line, "    ") for line in wrap(body, _WIDTH - 4))
    yield '    """'


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 'es' if noun.endswith('h') else 's'}"


def _table(at: Sequence[int]) -> Iterator[str]:
    """The rank of each stage, as a list."""
    line = f"    let at = [{', '.join(map(str, at))}]"
    if len(line) <= 80:
        yield f"{line}  # the rank of each stage"
        return
    yield "    # The rank of each stage."
    if len(line) <= _WIDTH:
        yield line
        return
    yield "    let at = ["
    yield from (f"        {rank}," for rank in at)
    yield "    ]"


def _rank(schedule: Schedule, rank: int, steps: Steps) -> Iterator[str]:
    items: list[Item] = []
    for action in schedule.rows[rank].actions:
        items += _leaves(action)
    yield f"    if rank == {rank}:"
    yield from _block(fold(items), "        ", steps, None, 0)


def _leaves(action: Action) -> Iterator[Leaf]:
    """An action without its micro-batch; the parts of an OVERLAP_F_B say so."""
    for place, atom in enumerate(action.atoms()):
        note = f"  # {place + 1} of {len(action.parts)} in one {action.act}" if action.parts else ""
        yield Leaf(atom.act, atom.stage, None if atom.batch == NONE else atom.batch, note)


def _block(
    items: Sequence[Item], margin: str, steps: Steps, variable: str | None, depth: int
) -> Iterator[str]:
    for item in items:
        batch = item.batch
        if isinstance(item, Leaf):
            where = "" if batch is None else _batch(variable, batch)
            *before, last = steps.lines(item.act, item.stage, where)
            yield from (f"{margin}{line}" for line in before)
            yield f"{margin}{last}{item.note}"
            continue
        assert batch is not None
        name = _VARIABLES[depth]
        end = _batch(variable, batch + item.rounds * item.step)
        step = "" if item.step == 1 else f", {item.step}"
        start = f"{_batch(variable, batch)}, "
        if start == "0, " and not step:
            start = ""
        yield f"{margin}for {name} in range({start}{end}{step}):"
        yield from _block(item.body, f"{margin}    ", steps, name, depth + 1)


def _batch(variable: str | None, offset: int) -> str:
    """A micro-batch, counted from the variable of the loop around it."""
    if variable is None:
        return str(offset)
    if offset == 0:
        return variable
    return f"{variable} {'+' if offset > 0 else '-'} {abs(offset)}"
