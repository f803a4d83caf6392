"""The executor's calls on MPI: their buffers are prepared once, when a plan is bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commlang.execute.calls import NEWER, Call, PublicCalls

if TYPE_CHECKING:
    import torch
    import torch.distributed as dist

    from commlang.execute.mpi.action import Action
    from commlang.execute.mpi.actions import Actions


class MpiCalls(PublicCalls):
    """Each operation as one of MPI that is made once and started as often as it is called."""

    def __init__(self, group: dist.ProcessGroup, actions: Actions, *, all_wait: bool) -> None:
        super().__init__(group)
        self._actions, self._all_wait = actions, all_wait

    def send(self, tensor: torch.Tensor, dst: int, tag: int) -> Call:
        public = super().send(tensor, dst, tag)
        return _call(self._actions.send(tensor, dst, tag), public.message)

    def recv(self, tensor: torch.Tensor, src: int, tag: int) -> Call:
        public = super().recv(tensor, src, tag)
        return _call(self._actions.recv(tensor, src, tag), public.message)

    def collective(self, name: str, *tensors: Any, **arguments: Any) -> Call:
        # Both take tensors as torch's function does, then the op, then the root or the splits.
        action = getattr(self._actions, NEWER.get(name, name))
        made = action(*tensors, *arguments.values())
        return Call(made.start, made.run_blocking if self._all_wait else made.run)


def _call(action: Action, message: dist.P2POp | None = None) -> Call:
    return Call(action.start, action.run, message)
