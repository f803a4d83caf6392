"""The data of one rank: tensors with known values, temps full of garbage, and local work on them.

Both who really runs a script and who only works out what it must give use this.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.differential.script import Region, Script, Step

OPS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "sum": torch.add,
    "avg": torch.add,
    "premul_sum": torch.add,
    "product": torch.mul,
    "min": torch.minimum,
    "max": torch.maximum,
    "band": torch.bitwise_and,
    "bor": torch.bitwise_or,
    "bxor": torch.bitwise_xor,
}

_LARGEST = {"float16": 40, "bfloat16": 6, "int8": 100, "uint8": 200}
_COUNTS = 199
"""Values are below this, so that sums of sums stay exact in float32."""
_PERIOD = 65_521
"""Large tensors repeat; a prime, so that no two rows of them are alike."""


def initial(rank: int, name: str, numel: int, dtype: str, seed: int = 0) -> torch.Tensor:
    """What a tensor of a rank holds at first: small whole numbers that tell places apart."""
    key = zlib.crc32(f"{seed}/{rank}/{name}".encode())
    index = torch.arange(min(numel, _PERIOD), dtype=torch.int64)
    mixed = (index * 0x9E3779B1 + key) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 12)) * 0x297A2D39) & 0xFFFFFFFF
    mixed ^= mixed >> 15
    values = (1 + mixed % _LARGEST.get(dtype, _COUNTS)).to(getattr(torch, dtype))
    return values.repeat(-(-numel // _PERIOD))[:numel] if numel > _PERIOD else values


class Memory:
    """The buffers of a rank; `garbage` is what a temp holds before it is written."""

    def __init__(self, script: Script, seed: int = 0, garbage: int = 99) -> None:
        self._script = script
        self._garbage = garbage
        self._flat: dict[int, torch.Tensor] = {}
        self.seen: list[tuple[Any, ...]] = []
        """What compute and externs were called with."""
        for name, (number, _) in script.tensors.items():
            dtype, numel = script.buffers[number]
            self._flat[number] = initial(script.rank, name, numel, dtype, seed)

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensor parameters as they are now, flat."""
        return {name: self._flat[number] for name, (number, _) in self._script.tensors.items()}

    def view(self, region: Region) -> torch.Tensor:
        if region.buffer not in self._flat:
            dtype, numel = self._script.buffers[region.buffer]
            kind: torch.dtype = getattr(torch, dtype)
            self._flat[region.buffer] = torch.full((numel,), self._garbage).to(kind)
        return self._flat[region.buffer].as_strided(region.shape, region.strides, region.offset)

    def views(self, step: Step) -> list[torch.Tensor]:
        return [self.view(region) for region in step.regions]

    def work(self, step: Step) -> None:
        """Do a step of local work."""
        views = self.views(step)
        match step.kind:
            case "COPY":
                views[1].copy_(views[0].reshape(views[1].shape))
            case "ACCUMULATE":
                source = views[0].reshape(views[1].shape).to(views[1].dtype)
                views[1].copy_(OPS[step.op or "sum"](views[1], source))
            case "SCALE":
                views[0].mul_(step.arguments["factor"])
            case "FILL":
                views[0].fill_(step.arguments["value"])
            case _:
                self._outside(step, views)

    def _outside(self, step: Step, views: list[torch.Tensor]) -> None:
        """Compute or an extern: what it writes are small whole numbers made of all it reads.

        And of the rank, whose weights or samples are its own.
        """
        accesses = [region.access for region in step.regions]
        read = [v for v, a in zip(views, accesses, strict=True) if a != "write"]
        given = [v for n, v in sorted(step.arguments.items()) if n not in ("duration", "cost")]
        digest = zlib.crc32(repr((self._script.rank, step.name, given)).encode())
        for number, tensor in enumerate(read):
            digest = _digest(tensor, digest + number)
        if step.regions:
            self.seen.append((step.name, repr(given), digest))
        for number, (tensor, access) in enumerate(zip(views, accesses, strict=True)):
            if access != "read":
                places = torch.arange(tensor.numel()).reshape(tensor.shape)
                tensor.copy_((places * 7 + digest + number) % 23)


def _digest(tensor: torch.Tensor, start: int) -> int:
    """A number that depends on every element and on its place."""
    data = tensor.contiguous().reshape(-1).view(torch.uint8)
    return zlib.crc32(data.numpy().tobytes(), start & 0xFFFFFFFF)


def reduced(op: str, factor: float | None, parts: Iterable[torch.Tensor]) -> torch.Tensor:
    """The reduction of the ranks' tensors, in the order of the ranks."""
    first, *rest = [part * factor if factor is not None else part for part in parts]
    result = first.clone()
    for part in rest:
        result = OPS[op](result, part.reshape(result.shape))
    return (result / (1 + len(rest))).to(result.dtype) if op == "avg" else result
