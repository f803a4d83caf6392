"""The rules on data against an oracle that looks at each element, on random patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from commlang.checks import aliased, overlap, race, undefined_after_reduce, uninitialised
from commlang.checks.facts import gather_facts
from commlang.errors import PatternError
from commlang.program import build
from commlang.resolve.modules import load_module
from commlang.source import Source
from tests.checks.shadow import judge

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from commlang.checks.facts import Facts

HEAD = """\
extern work(a: read float32[n], b: write float32[n], c: update float32[n])

pattern inner(x: float32[n], y: float32[n], n = 12):
    h = async all_reduce(x[:4])
    y[4:6] -> y[8:10]
    wait(h)

pattern main(x: float32[n], y: float32[n], n = 12):
    temp t: float32[n]
    temp u: float32[n]
"""

NAMES = ("x", "y", "t", "u", "v")


@st.composite
def views(draw: Callable[..., object], names: tuple[str, ...], size: int) -> str:
    """A contiguous view of so many elements."""
    low = draw(st.sampled_from([0, 0, 4, 6, 12 - size]))
    assert isinstance(low, int)
    low = min(low, 12 - size)
    name = draw(st.sampled_from(names))
    return f"{name}[{low}:{low + size}]" if size < 12 else str(name)


@st.composite
def strided(draw: Callable[..., object], names: tuple[str, ...]) -> str:
    """A view of six elements, some with gaps."""
    name = draw(st.sampled_from(names))
    end = draw(st.sampled_from(["[0:12:2]", "[1:12:2]", "[3:9]", "[0:6]", "[6:12]"]))
    return f"{name}{end}"


@st.composite
def simple(draw: Callable[..., object], names: tuple[str, ...], world: int) -> str:
    """An operation that is no async one."""
    kind = draw(
        st.sampled_from(["copy", "add", "fill", "scale", "compute", "work", "comm", "comm"])
    )
    six = strided(names)
    match kind:
        case "copy":
            return f"{draw(six)} -> {draw(six)}"
        case "add":
            return f"{draw(six)} -> {draw(six)}, op=sum"
        case "fill":
            return f"fill({draw(six)}, 1)"
        case "scale":
            return f"scale({draw(six)}, 2)"
        case "compute":
            return f"compute(1ms, reads={draw(six)}, writes=[{draw(six)}, {draw(six)}])"
        case "work":
            return f"work({draw(six)}, {draw(six)}, {draw(six)})"
        case _:
            return str(draw(communication(names, world)))


@st.composite
def communication(draw: Callable[..., object], names: tuple[str, ...], world: int) -> str:
    size = draw(st.sampled_from([2, 4, 6]))
    assert isinstance(size, int)
    view = views(names, size)
    whole, part = views(names, 12), views(names, 12 // world)
    root = draw(st.integers(0, world - 1))
    own = draw(st.sampled_from([f"{n}.chunks(world)[rank]" for n in names]))
    entries = [f"{n}.chunks(world)" for n in names]
    entries.append("[" + ", ".join(str(draw(part)) for _ in range(world)) + "]")
    lists = st.sampled_from(entries)
    piece = st.one_of(st.just(own), part)
    return str(
        draw(
            st.sampled_from(
                [
                    f"send({draw(view)}, dst=ranks.next)",
                    f"recv({draw(view)}, src=ranks.prev)",
                    f"all_reduce({draw(view)})",
                    f"reduce({draw(view)}, dst={root})",
                    f"reduce({draw(view)}, dst={root})",
                    f"broadcast({draw(view)}, src={root})",
                    f"all_gather({draw(lists)}, {draw(piece)})",
                    f"all_gather_into_tensor({draw(whole)}, {draw(piece)})",
                    f"reduce_scatter({draw(piece)}, {draw(lists)})",
                    f"reduce_scatter_tensor({draw(piece)}, {draw(whole)})",
                    f"all_to_all({draw(lists)}, {draw(lists)})",
                    f"all_to_all_single({draw(whole)}, {draw(whole)})",
                ]
            )
        )
    )


@st.composite
def block(
    draw: Callable[..., object], names: tuple[str, ...], world: int, depth: int, inside: bool
) -> list[str]:
    lines: list[str] = []
    many = draw(st.integers(1, 5 if depth == 0 else 3))
    assert isinstance(many, int)
    for number in range(many):
        forms = ["simple"] * 4
        if depth < 3:
            forms += ["parallel", "sequence", "for", "if"]
        if not inside:
            forms += ["async", "async", "wait"]
        forms.append("call")
        form = draw(st.sampled_from(forms))
        match form:
            case "simple":
                lines.append(str(draw(simple(names, world))))
            case "async":
                handle = f"h{depth}{number}"
                lines.append(f"{handle} = async {draw(communication(names, world))}")
                lines += draw(block(names, world, depth + 1, inside))  # pyright: ignore
                if draw(st.booleans()):
                    lines += ["parallel:", f"    wait({handle})"]
                    lines += [f"    {draw(simple(names, world))}"]
                else:
                    lines.append(f"wait({handle})")
            case "wait":
                lines.append("pass")
            case "call":
                a, b = (draw(st.sampled_from(names)) for _ in range(2))
                lines.append(f"inner({a}, {b})")
            case "for":
                body = draw(block((*names, "v"), world, depth + 1, inside))
                lines += ["for i in range(2):", "    temp v: float32[n]"]
                lines += [f"    {line}" for line in body]  # pyright: ignore
            case _:
                head = {"if": "if rank > 0:"}.get(str(form), f"{form}:")
                body = draw(block(names, world, depth + 1, inside or form != "if"))
                lines += [head, *(f"    {line}" for line in body)]  # pyright: ignore
    return lines


@st.composite
def patterns(draw: Callable[..., object]) -> tuple[str, int]:
    world = draw(st.sampled_from([2, 3]))
    assert isinstance(world, int)
    lines: list[str] = []
    for name in "tu":
        lines += draw(st.sampled_from([[], [f"fill({name}, 1)"], [f"fill({name}[:6], 1)"]]))  # pyright: ignore
    lines += draw(block(NAMES[:4], world, 0, False))  # pyright: ignore
    return HEAD + "".join(f"    {line}\n" for line in lines), world


def found(rule: ModuleType, facts: Facts) -> list[tuple[int, ...]]:
    """The lines that the findings of a rule name."""
    return [
        tuple(label.source.position(label.span.start)[0] for label in finding.labels)
        for finding in rule.check(facts)
    ]


@given(patterns())
def test_the_rules_agree_with_shadow_memory(case: tuple[str, int]) -> None:
    text, world = case
    try:
        program = build(load_module(Source(text, "case.cl")).symbols["main"], world)
    except PatternError as error:
        raise AssertionError(text) from error
    facts, wanted = gather_facts(program), judge(program)

    pairs = {lines[:2] for lines in found(overlap, facts)}
    assert pairs <= wanted.overlaps
    assert {i for pair in pairs for i in pair} == {i for pair in wanted.overlaps for i in pair}

    races = {(lines[1], lines[0]) for lines in found(race, facts)}
    assert races <= wanted.races | wanted.beside
    assert {second for _, second in races} >= {second for _, second in wanted.races}
    assert not wanted.beside or races or pairs

    unwritten = {lines[0] for lines in found(uninitialised, facts)}
    assert unwritten <= wanted.unwritten.keys()
    told = {region for line in unwritten for region in wanted.unwritten[line]}
    every = {region for regions in wanted.unwritten.values() for region in regions}
    assert every - wanted.excused <= told

    assert {lines[0] for lines in found(undefined_after_reduce, facts)} == wanted.undefined
    assert {lines[0] for lines in found(aliased, facts)} == wanted.aliased
