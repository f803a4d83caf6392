"""What surrounds the steps of a run: autograd, which is left out, and profilers, which are told."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import profiler

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

_torch_c: Any = torch._C  # pyright: ignore[reportPrivateUsage]


def below_autograd() -> AbstractContextManager[object]:
    """A context, to be used again at will, in which torch does not look for gradients to record.

    No collective has any. Outside of it the dispatcher finds that out for each operation anew, by
    unpacking all arguments: 0.3 to 0.5 µs. Everything else that it does stays, profilers included,
    and tensors that are made are ordinary ones. Does nothing where torch has no such guard.
    """
    names = ("AutogradFunctionality", "AutogradOther", "AutogradNestedTensor")
    try:
        keys = [_torch_c.DispatchKeySet(getattr(_torch_c.DispatchKey, name)) for name in names]
        return _torch_c._ExcludeDispatchKeyGuard(keys[0] | keys[1] | keys[2])
    except (AttributeError, TypeError):
        return nullcontext()


def as_here() -> AbstractContextManager[object]:
    """A context that gives another thread the modes of autograd which this one is in now.

    They belong to a thread: tensors made in inference mode can only be written in it.
    """
    if torch.is_inference_mode_enabled():
        return torch.inference_mode()
    return nullcontext() if torch.is_grad_enabled() else torch.no_grad()


def ranged(title: str, step: Callable[[], Any]) -> Callable[[], None]:
    """`step` as a range of this title."""

    def run() -> None:
        with profiler.record_function(title):
            step()

    return run
