"""The fill: made again anywhere, different everywhere, and exact in all partial results."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
import torch

from commlang.dtypes import DTYPES
from commlang.errors import UsageError
from commlang.execute.contract_profile import Profile, profile_of
from commlang.execute.fill import Filler, exact_limit, fill
from commlang.plan import make_plan
from commlang.program import build
from commlang.resolve.modules import load_module
from commlang.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

N = 24
WORLDS = (1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 33, 64, 128, 512)
SUMMED = [name for name in DTYPES if name not in ("bool", "float8_e8m0fnu", "complex32")]
REAL = [name for name in SUMMED if DTYPES[name].family != "complex"]
FLOATS = [name for name in REAL if DTYPES[name].family == "float"]


def _fills(name: str, world: int, profile: Profile, n: int = N) -> list[torch.Tensor]:
    return [
        fill("x", DTYPES[name], (n,), rank=r, world=world, seed=3, profile=profile)
        for r in range(world)
    ]


def _parts(tensors: list[torch.Tensor]) -> Iterator[torch.Tensor]:
    """The values of all ranks as exact integers [world, n], real and imaginary parts apart."""
    if tensors[0].is_complex():
        pairs = torch.stack([torch.view_as_real(t.to(torch.complex128)) for t in tensors])
        yield from pairs.to(torch.int64).unbind(-1)
    else:
        exact = torch.stack([t.to(torch.float64) for t in tensors])
        assert torch.equal(exact, exact.round())
        yield exact.to(torch.int64)


def _held(values: torch.Tensor, name: str) -> bool:
    """Whether a dtype holds these integers exactly (of a complex one: each of its parts)."""
    names = {"complex64": "float32", "complex128": "float64"}
    dtype: torch.dtype = getattr(torch, names.get(name, name))
    return torch.equal(values.to(dtype).to(torch.float64), values.to(torch.float64))


def _orders(world: int) -> Iterator[list[int]]:
    """Orders in which a backend may combine ranks; every prefix is a partial result."""
    ranks = list(range(world))
    yield ranks
    yield ranks[::-1]
    yield random.Random(world).sample(ranks, world)


@pytest.mark.parametrize("name", SUMMED)
def test_partial_sums_are_exact(name: str) -> None:
    for world in (*range(1, 65), 128, 512) if name in ("bfloat16", "int8") else WORLDS:
        for values in _parts(_fills(name, world, Profile(("sum",), world))):
            assert int(values.min()) >= 0  # then no partial sum exceeds the whole one
            assert int(values.sum(0).max()) <= exact_limit(DTYPES[name])
            for order in _orders(world):
                assert _held(values[order].cumsum(0), name), (name, world)


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32", "int8", "int32", "complex64"])
@pytest.mark.parametrize("world", [3, 64, 100, 512])
def test_sums_in_the_dtype_itself_are_the_exact_ones(name: str, world: int) -> None:
    tensors = _fills(name, world, Profile(("sum",), world))
    for order in _orders(world):
        total = tensors[order[0]].clone()
        for rank in order[1:]:
            total += tensors[rank]
        for exact, part in zip(_parts(tensors), _parts([total]), strict=True):
            assert torch.equal(exact.sum(0), part[0])


@pytest.mark.parametrize("name", REAL)
def test_partial_products_are_exact_and_never_zero(name: str) -> None:
    for world in (*range(1, 65), 128, 512) if name in ("bfloat16", "int8") else WORLDS:
        (values,) = _parts(_fills(name, world, Profile(("product",), world)))
        assert int(values.abs().min()) >= 1
        for order in _orders(world):
            for column in range(0, N, 7):
                product, largest = 1, 0
                for factor in values[order, column].tolist():
                    product *= factor
                    largest = max(largest, abs(product))
                    assert abs(product).bit_count() == 1
                assert largest < 1 << 62
                assert _held(torch.tensor([product, largest]), name), (name, world)
        if world > 1:
            assert int(values.abs().max()) > 1
        signed = DTYPES[name].family != "uint"
        assert (int(values.min()) < 0) is signed


@pytest.mark.parametrize("name", REAL)
def test_means_are_exact_wherever_multiples_fit(name: str) -> None:
    for world in WORLDS:
        profile = Profile(("avg",), world, divisor=world)
        (values,) = _parts(_fills(name, world, profile))
        for order in _orders(world):
            assert _held(values[order].cumsum(0), name)
        odd = world // (world & -world) if name in FLOATS else world
        if odd > exact_limit(DTYPES[name]):
            assert int(values.max()) >= 1  # no multiple exists: the mean is rounded, but once
            continue
        for total in values.sum(0).tolist():
            mean = Fraction(total, world)
            scale = mean.denominator  # a power of two: shifts the mean to an integer
            assert scale & (scale - 1) == 0
            assert name in FLOATS or scale == 1
            assert _held(torch.tensor([mean.numerator]), name), (name, world, mean)


@pytest.mark.parametrize("name", ["int8", "uint8", "int32", "int64", "uint16", "bool"])
@pytest.mark.parametrize("op", ["band", "bor", "bxor"])
def test_bit_reductions_tell_something_in_any_world(name: str, op: str) -> None:
    function = {"band": "bitwise_and", "bor": "bitwise_or", "bxor": "bitwise_xor"}[op]
    for world in (2, 8, 100):
        (values,) = _parts(_fills(name, world, Profile((op,), world), 200))
        result = values[0]
        for row in values[1:]:
            result = getattr(torch, function)(result, row)
        assert _held(values, name)
        assert len(result.unique()) >= 2


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.filterwarnings("ignore:ComplexHalf support:UserWarning")
def test_filling_again_gives_the_same_and_each_part_of_the_key_matters(name: str) -> None:
    dtype, profile = DTYPES[name], Profile()

    def make(tensor: str = "x", rank: int = 1, seed: int = 0) -> torch.Tensor:
        made = fill(tensor, dtype, (40, 5), rank=rank, world=4, seed=seed, profile=profile)
        assert made.shape == (40, 5)
        assert made.dtype == getattr(torch, name)
        assert made.is_contiguous()
        return made.to(torch.complex128)

    first = make()
    assert torch.equal(first, make())
    share = 0.3 if name in ("bool", "float8_e8m0fnu", "float8_e5m2", "float8_e5m2fnuz") else 0.8
    for other in (make("y"), make(rank=2), make(seed=1), first.flip(0), first.roll(1, 1)):
        assert (first != other).double().mean() > share


def test_values_do_not_depend_on_how_many_follow() -> None:
    kwargs = {"rank": 0, "world": 2, "seed": 0, "profile": Profile(("sum",), 2)}
    short = fill("x", DTYPES["int32"], (100,), **kwargs)
    long = fill("x", DTYPES["int32"], ((1 << 18) + 100,), **kwargs)
    assert torch.equal(long[:100], short)
    assert not torch.equal(long[1 << 18 :], short)  # a second block does not repeat the first
    assert fill("x", DTYPES["int32"], (), **kwargs).shape == ()
    assert fill("x", DTYPES["int32"], (0, 3), **kwargs).shape == (0, 3)


def test_every_rank_contributes_somewhere_even_where_most_are_zero() -> None:
    world = 512
    (values,) = _parts(_fills("bfloat16", world, Profile(("sum",), world), 8))
    assert int((values > 0).sum(0).max()) == 64
    assert bool((values > 0).any(1).all())


def test_sum_and_product_at_once() -> None:
    profile = Profile(("product", "sum"), 100)
    (values,) = _parts(_fills("bfloat16", 100, profile))
    assert int(values.min()) >= 1
    assert int(values.sum(0).max()) <= 256
    assert all(math.prod(column).bit_length() <= 128 for column in values.T.tolist())
    with pytest.raises(UsageError, match=r"512 ranks are both exact in bfloat16.*wider dtype"):
        fill("x", DTYPES["bfloat16"], (4,), rank=0, world=512, seed=0, profile=profile)


def test_growth_and_several_contributions_leave_room() -> None:
    profile = Profile(("sum",), contributions=16, growth=3)
    (values,) = _parts(_fills("bfloat16", 4, profile))
    assert int(values.max()) * 16 * 3 <= 256
    assert len(values.unique()) > 1
    (values,) = _parts(_fills("bfloat16", 2, Profile(("sum",), 2, growth=355)))
    assert len(values.unique()) > 10  # no room for so much growth: rather tell values apart


def _profile(text: str, world: int, **values: object) -> Profile:
    module = load_module(Source(text))
    return profile_of(build(module.symbols[module.exported[0]], world, values))


def test_the_profile_of_a_pattern() -> None:
    text = """
pattern p(x: float32[4], op = max):
    ensure x == op(old(x) @ r for r in ranks)
    mesh outer = world // 3, inner = 3
    all_reduce(x, op=avg, group=inner)
    all_reduce(x, op=avg, group=outer)
    scale(x, 5 / 7)
"""
    assert _profile(text, 6) == Profile(("avg", "max"), 6, 3 * 2 * 7, 5)
    assert _profile(text, 6, op="product").ops == ("avg", "product")
    plain = "pattern p(x: float32[4]):\n    ensure x == avg(old(x) @ r for r in ranks)\n"
    assert _profile(plain, 5) == Profile(("avg",), 5, 5)
    scaled = "pattern p(x: float32[4]):\n    for i in range(1, 4):\n        scale(x, i)\n"
    assert _profile(scaled, 2) == Profile((), 2, 1, 3)
    ranked = "pattern p(x: float32[4]):\n    scale(x, 1 / 2 if rank == 0 else 2 / 3)\n"
    assert _profile(ranked, 3) == Profile((), 3, 6, 2)
    nothing = "pattern p(x: float32[4]):\n    compute(1ms)\n"
    assert _profile(nothing, 2) == Profile((), 2)


def test_a_filler_makes_the_tensors_of_any_rank() -> None:
    text = "pattern p(x: int32[share(n, world, rank)], y: float32[2], n = 7):\n    pass\n"
    module = load_module(Source(text))
    filler = Filler(make_plan(module.symbols["p"], 3), seed=1)
    made = [filler.tensors(rank) for rank in range(3)]
    assert [list(t) for t in made] == [["x", "y"]] * 3
    assert [t["x"].shape[0] for t in made] == [3, 2, 2]
    assert torch.equal(made[2]["x"], Filler(make_plan(module.symbols["p"], 3), 1).initial(2, "x"))
    assert not torch.equal(made[0]["y"], made[1]["y"])
