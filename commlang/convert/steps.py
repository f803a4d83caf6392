"""The lines of a pattern that stand for one action of a pipeline schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.convert.actions import SENDS, Act, Action
from commlang.convert.order import peer_stage
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlang.convert.schedule import Schedule

_BUFFERS = {Act.SEND_F: "y", Act.RECV_F: "x", Act.SEND_B: "dx", Act.RECV_B: "dy"}
"""x and y are what goes into a stage and comes out of it, dx and dy their gradients."""

EXTERNS = {
    Act.FORWARD: "forward",
    Act.BACKWARD: "backward",
    Act.BACKWARD_INPUT: "backward_input",
    Act.BACKWARD_WEIGHT: "backward_weight",
    Act.UNSHARD: "unshard",
    Act.RESHARD: "reshard",
    Act.REDUCE_GRAD: "reduce_grad",
}
_GRADIENT = """\
extern {name}(
    x: read bfloat16[n],
    dy: read bfloat16[n],
    dx: write bfloat16[n],
    stage: int,
    m: int,
):
    \"\"\"{text}\"\"\"
    cost {cost}"""
_ON_WEIGHTS = """\
extern {name}(stage: int):
    \"\"\"{text}\"\"\"
    cost 1us"""
DEFINITIONS = {
    Act.FORWARD: """\
extern forward(x: read bfloat16[n], y: write bfloat16[n], stage: int, m: int):
    \"\"\"A stage on micro-batch m; the last one computes its loss too.\"\"\"
    cost 1ms""",
    Act.BACKWARD: _GRADIENT.format(
        name="backward", text="The gradients of a stage's input and of its weights.", cost="2ms"
    ),
    Act.BACKWARD_INPUT: _GRADIENT.format(
        name="backward_input", text="The gradient of a stage's input.", cost="1ms"
    ),
    Act.BACKWARD_WEIGHT: """\
extern backward_weight(x: read bfloat16[n], dy: read bfloat16[n], stage: int, m: int):
    \"\"\"The gradient of a stage's weights.\"\"\"
    cost 1ms""",
    Act.UNSHARD: _ON_WEIGHTS.format(
        name="unshard", text="Gathers a stage's weights from the ranks that share it (FSDP)."
    ),
    Act.RESHARD: _ON_WEIGHTS.format(
        name="reshard", text="Lets go of the weights that unshard gathered."
    ),
    Act.REDUCE_GRAD: _ON_WEIGHTS.format(
        name="reduce_grad", text="Reduces a stage's gradients over the ranks that share it."
    ),
}
"""The externs that stand for what a rank does alone, or with others than those of the pipeline."""


@record
class Steps:
    """How an action reads, given the rank of each stage."""

    at: Sequence[int]
    blocking: bool

    def lines(self, act: Act, stage: int, batch: str) -> Iterator[str]:
        """The statements of an action; `batch` is its micro-batch, or empty."""
        if act in _BUFFERS:
            yield self._message(act, stage, f"[{stage}, {batch}]")
        elif batch:
            yield from self._computation(act, stage, batch)
        else:
            yield f"{EXTERNS[act]}({stage})"

    def _message(self, act: Act, stage: int, index: str) -> str:
        buffer = _BUFFERS[act]
        peer = self.at[peer_stage(Action(act, stage))]
        name, key = ("send", "dst") if act in SENDS else ("recv", "src")
        call = f"{name}({buffer}{index}, {key}={peer})"
        if self.blocking:
            return call
        return f"{'sent' if act in SENDS else 'got'}_{buffer}{index} = async {call}"

    def _computation(self, act: Act, stage: int, batch: str) -> Iterator[str]:
        index = f"[{stage}, {batch}]"
        match act:
            case Act.FORWARD:
                yield from self._input(Act.RECV_F, stage, batch)
                yield f"forward(x{index}, y{index}, {stage}, {batch})"
            case Act.BACKWARD_WEIGHT:
                yield f"backward_weight(x{index}, dy{index}, {stage}, {batch})"
            case _:
                yield from self._input(Act.RECV_B, stage, batch)
                yield f"{EXTERNS[act]}(x{index}, dy{index}, dx{index}, {stage}, {batch})"

    def _input(self, recv: Act, stage: int, batch: str) -> Iterator[str]:
        """Wait for the message, or take over what a neighbour on the same rank has made."""
        source = peer_stage(Action(recv, stage))
        if not 0 <= source < len(self.at):
            return
        buffer, made = ("x", "y") if recv is Act.RECV_F else ("dy", "dx")
        if self.at[source] == self.at[stage]:
            yield f"{made}[{source}, {batch}] -> {buffer}[{stage}, {batch}]"
        elif not self.blocking:
            yield f"wait(got_{buffer}[{stage}, {batch}])"

    def handles_of_sends(self, schedule: Schedule) -> list[str]:
        """The handles to wait for at the end of the step."""
        if self.blocking:
            return []
        return [f"sent_{_BUFFERS[act]}" for act in (Act.SEND_F, Act.SEND_B) if schedule.uses(act)]
