"""What tensors hold before a run: values that tell ranks and positions apart, and stay exact.

Every value is a hash of (seed, name, rank, position), mapped into a range of small integers. So any
rank can make any rank's data again, and what is lost, misplaced or stale shows. The range is
chosen from the reductions of the pattern (a `Profile`) such that every partial result, in whatever
order a backend forms it, is a number of the dtype: results can be compared bit by bit. With L the
largest integer up to which a dtype holds all (256 for bfloat16):

- sum, avg, premul_sum: values 1 to M with at most L in all, so that every partial sum is an
  integer up to L. Where that would leave less than four values, only a few ranks are not zero at
  a position, a different few at the next: each rank's contribution counts somewhere.
- avg, and scaling by a fraction: multiples of the divisor, so that the result is an integer. Floats
  need multiples of its odd part only, since halving is exact. Should even one such multiple exceed
  L, values are plain, and the mean is the exact sum rounded once. Likewise, what is scaled up is
  kept small as long as that leaves a choice of values.
- product: powers of two, with a sign where the dtype has one, and 1 or -1 on most ranks, so that
  the exponents add up to no more than the dtype holds. No zero, which would hide everything.
- band, bor, bxor: random bits; where all reductions have one neutral element in common, all but
  four ranks hold it at a position, so that the result is not the same everywhere.
- min, max and plain copies: integers up to L.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

import torch

from commlang.errors import UsageError
from commlang.execute.allocate import flat
from commlang.execute.contract_profile import Profile, profile_of
from commlang.execute.memory import torch_dtype
from commlang.execute.shortage import allocating
from commlang.expand.values import take
from commlang.records import record

if TYPE_CHECKING:
    from commlang.dtypes import DType
    from commlang.plan import Plan

_BLOCK = 1 << 18
"""Elements made at once: few enough for the cache, enough to hide the cost of a call."""
_MASK = 0xFFFFFFFF
_WIDEST = 31
"""Bits of the largest values of wide dtypes: a hash has 32."""
_SUMMED = 1 << 12
"""Largest value of a sum, if the dtype does not ask for less: leaves room for repeated sums."""
_FEW = 4

_EXACT_BITS = {
    "float64": _WIDEST,
    "float32": 24,
    "float16": 11,
    "bfloat16": 8,
    "float8_e4m3fn": 4,
    "float8_e4m3fnuz": 4,
    "float8_e5m2": 3,
    "float8_e5m2fnuz": 3,
    "complex32": 11,
    "complex64": 24,
    "complex128": _WIDEST,
}
_EXPONENTS = {
    "float16": 15,
    "complex32": 15,
    "float8_e4m3fn": 8,
    "float8_e4m3fnuz": 7,
    "float8_e5m2": 15,
    "float8_e5m2fnuz": 15,
}
"""Exponents of the largest power of two, where it is below 2**60."""


@record
class Recipe:
    """How hashes become values.

    Without `power`, a value is `unit * (1 + hash % most)`; with it, 2 to a power of at most
    `most`, negative every other time if `signed`; with `bits`, `most + 1` is a power of two and a
    value has random bits. Only `active` ranks have such values at a position; the others hold
    `rest` there (times the sign).
    """

    most: int
    active: int
    unit: int = 1
    rest: int = 0
    power: bool = False
    signed: bool = False
    bits: bool = False

    @property
    def largest(self) -> int:
        """The largest absolute value."""
        if self.power:
            return 1 << self.most
        return max(self.rest, self.most if self.bits else self.unit * self.most)


def exact_limit(dtype: DType) -> int:
    """The largest integer L such that the dtype holds 0 to L, capped at 2**31."""
    if dtype.family == "bool":
        return 1
    if dtype.family in ("int", "uint"):
        return (1 << min(_value_bits(dtype), _WIDEST)) - 1
    return 1 << _EXACT_BITS.get(dtype.name, 0)


def _value_bits(dtype: DType) -> int:
    return 1 if dtype.family == "bool" else 8 * dtype.itemsize - (dtype.family == "int")


def recipe(dtype: DType, world: int, profile: Profile) -> Recipe:
    """The values for a dtype under a profile; raises UsageError where none would be exact."""
    ops = frozenset(profile.ops)
    sums = ops & {"sum", "avg", "premul_sum"}
    if dtype.name == "float8_e8m0fnu":  # powers of two are all it has: nothing to add up
        return Recipe(6, world, power=True)
    if dtype.family == "bool" or (ops & {"band", "bor", "bxor"} and not sums):
        return _bits(dtype, world, ops)
    if "product" in ops:
        return _product(dtype, world, bool(sums))
    if sums:
        return _sum(dtype, world, profile)
    return Recipe(min(_limit(dtype, profile), 1 << 24), world)


def _limit(dtype: DType, profile: Profile) -> int:
    """How large a result may be before it grows; all of L if growth leaves no room to choose."""
    limit = exact_limit(dtype)
    return limit // profile.growth if profile.growth * _FEW <= limit else limit


def _sum(dtype: DType, world: int, profile: Profile) -> Recipe:
    limit = _limit(dtype, profile)
    unit = profile.divisor
    if dtype.family in ("float", "complex"):
        unit //= unit & -unit
    if unit > limit:
        unit = 1
    multiples = limit // unit
    each = -(-profile.contributions // world)  # of one rank, in one result
    active = min(world, max(1, multiples // _FEW // each))
    return Recipe(min(max(1, multiples // (active * each)), _SUMMED), active, unit)


def _product(dtype: DType, world: int, summed: bool) -> Recipe:
    exponents = _EXPONENTS.get(dtype.name, 60)
    if dtype.family in ("int", "uint"):
        exponents = min(_value_bits(dtype) - 1 if dtype.family == "int" else _value_bits(dtype), 60)
        exponents -= dtype.family == "uint"
    active = min(world, max(1, exponents // 2))
    if not summed:
        signed = dtype.family in ("float", "int")
        return Recipe(exponents // active, active, rest=1, power=True, signed=signed)
    if world + active > exact_limit(dtype):
        raise UsageError(
            f"no data exist whose sums and products over {world} ranks are both exact in {dtype}; "
            "run the pattern with a wider dtype or on fewer ranks, or without checking its contract"
        )
    return Recipe(1, active, rest=1, power=True)


def _bits(dtype: DType, world: int, ops: frozenset[str]) -> Recipe:
    most = (1 << min(_value_bits(dtype), _WIDEST)) - 1
    down = ops & {"band", "min", "product"}
    up = ops - down
    few = min(world, _FEW)
    if not ops or (up and down) or "bxor" in ops:
        return Recipe(most, world, bits=True)
    return Recipe(most, few, rest=most if down else 0, bits=True)


def fill(
    name: str,
    dtype: DType,
    shape: tuple[int, ...],
    *,
    rank: int,
    world: int,
    seed: int,
    profile: Profile,
    device: torch.device | str = "cpu",
) -> torch.Tensor:
    """The initial values of tensor `name` on a rank, the same wherever they are made.

    Returns a contiguous tensor of that shape. Raises UsageError where no values would be exact.
    """
    how = recipe(dtype, world, profile)
    count = math.prod(shape)
    with allocating(f"tensor `{name}`", count * dtype.itemsize):
        made = flat(torch.empty, count, torch_dtype(dtype), device)
    key = hashlib.blake2b(f"{seed}\0{rank}\0{name}".encode(), digest_size=16).digest()
    real, imaginary = (int.from_bytes(key[i : i + 8], "little") for i in (0, 8))
    turn = int.from_bytes(hashlib.blake2b(f"{seed}".encode(), digest_size=4).digest(), "little")
    for start in range(0, len(made), _BLOCK):
        index = torch.arange(start, min(start + _BLOCK, len(made)), device=device)
        others = _others(index, rank, world, how.active, turn)
        values = _values(_hash(index, real), others, how)
        if dtype.family == "complex" and not how.power:
            second = _values(_hash(index, imaginary), others, how)
            values = torch.complex(values.double(), second.double())
        made[start : start + _BLOCK] = values
    return made.view(shape)


class Filler:
    """The initial tensors of a plan, of any rank."""

    def __init__(self, plan: Plan, seed: int, device: torch.device | str = "cpu") -> None:
        program = plan.program()
        self._views = program.tensors
        self._world = program.world
        self._profile = profile_of(program)
        self._seed = seed
        self._device = device

    def initial(self, rank: int, name: str) -> torch.Tensor:
        """A tensor parameter of a rank, made anew."""
        view = take(self._views[name], rank)
        return fill(
            name,
            view.dtype,
            tuple(view.shape),
            rank=rank,
            world=self._world,
            seed=self._seed,
            profile=self._profile,
            device=self._device,
        )

    def tensors(self, rank: int) -> dict[str, torch.Tensor]:
        """All tensor parameters of a rank."""
        return {name: self.initial(rank, name) for name in self._views}


def _hash(index: torch.Tensor, key: int) -> torch.Tensor:
    """A number of 32 bits for each position: multiplications and shifts that mix all bits."""
    first = int(index[0]) >> 32  # the multiplication below sees the low bits alone
    x = (index * 0x9E3779B1 + (key + first * 0x5851F42D & _MASK)) & _MASK
    x ^= x >> 16
    x.mul_(0x21F0AAAD).bitwise_and_(_MASK)
    x ^= (x >> 15) ^ (key >> 32)
    x.mul_(0x735A2D97).bitwise_and_(_MASK)
    x ^= x >> 15
    return x


def _others(
    index: torch.Tensor, rank: int, world: int, active: int, turn: int
) -> torch.Tensor | None:
    """Where this rank is none of the active ones; they move on by `active` ranks per position."""
    if active >= world:
        return None
    return (rank - turn - index * active) % world >= active


def _values(bits: torch.Tensor, others: torch.Tensor | None, how: Recipe) -> torch.Tensor:
    if how.power:
        values = torch.ones_like(bits) << (bits >> 1) % (how.most + 1)
    elif how.bits:
        values = bits & how.most
    else:
        values = (bits % how.most + 1) * how.unit
    if others is not None:
        values.masked_fill_(others, how.rest)
    if how.signed:
        values *= 1 - 2 * (bits & 1)
    return values
