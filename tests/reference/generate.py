"""Random patterns that mean something: names are bound, kinds fit, most indices are in range."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

HEAD = """\
extern work(t: update float32[m], u: read float32[n], k: int, m = 1, n = 1):
    cost 1ms

pattern deep(x: float32[n], depth, n = 4):
    let even = depth % 2 == 0
    if depth > 0:
        fill(x, depth)
        deep(x[0:n // 2] if even else x[n // 2:n], depth - 1)
        all_reduce(x)

pattern halve(x: float32[n], n = 4):
    if world > 1:
        let half = world // 2
        group side = [r for r in ranks if (r < half) == (rank < half)]
        parallel:
            send(x, dst=ranks.next, tag=1)
            halve(x, group=side)
            recv(x, src=ranks.prev, tag=1)

"""


@dataclass
class Names:
    """What is visible in a block, by kind; `uniform` ints are the same on all ranks."""

    ints: list[str] = field(default_factory=lambda: ["rank", "world"])
    uniform: list[str] = field(default_factory=lambda: ["world"])
    lists: list[str] = field(default_factory=lambda: ["ranks"])
    flat: list[str] = field(default_factory=list[str])
    """Tensors of one dim."""
    square: list[str] = field(default_factory=list[str])
    """Tensors of two dims."""
    groups: list[str] = field(default_factory=lambda: ["ranks"])
    functions: list[str] = field(default_factory=list[str])
    handles: list[str] = field(default_factory=list[str])

    def inner(self) -> Names:
        parts = (self.ints, self.uniform, self.lists, self.flat, self.square)
        more = (self.groups, self.functions, self.handles)
        return Names(*(list(p) for p in parts), *(list(m) for m in more))


class Writer:
    """Writes one file; every choice is the generator's."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.count = 0
        self.patterns: list[str] = []

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def new(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    # ------------------------------------------------------------------ files

    def file(self) -> str:
        text = HEAD
        for _ in range(self.random.randint(0, 2)):
            name = self.new("p")
            text += f"pattern {name}(x: float32[n], k, z: float32[q, q], n = 3, q = 2):\n"
            text += self.body(1) + "\n"
            self.patterns.append(name)
        sizes = [self.random.randint(1, 13), self.random.randint(1, 5), self.random.randint(0, 3)]
        text += (
            f"pattern main(x: float32[n], y: float32[n], z: float32[q, q], tab: int[w, w] = "
            f"[[(i * 3 + j) % 5 for i in range(3)] for j in range(3)], n = {sizes[0]}, "
            f"q = {sizes[1]}, k = {sizes[2]}):\n"
        )
        return text + self.body(2, main=True)

    def body(self, depth: int, *, main: bool = False) -> str:
        names = Names()
        names.ints += ["k", "n", "q"]
        names.uniform += ["k", "n", "q"] if main else ["k"]  # a shape may vary by rank
        names.flat += ["x", "y"] if main else ["x"]
        names.square += ["z"]
        if main:
            names.functions.append("tab[0, {}]")  # guarded below: 3 columns
        lines: list[str] = []
        if main and self.random.random() < 0.3:
            a, b = self.new("g"), self.new("g")
            lines.append(
                f"mesh {a} = world // gcd_, {b} = gcd_".replace(
                    "gcd_", self.pick("1", "world", "(2 - world % 2)")
                )
            )
            names.groups += [a, b]
            names.lists += [a, b]
        lines += self.block(names, depth, nest="")
        return "".join(f"    {line}\n" for line in lines)

    def block(self, names: Names, depth: int, nest: str) -> list[str]:
        lines: list[str] = []
        for _ in range(self.random.randint(1, 4)):
            lines += self.statement(names, depth, nest)
        return lines

    # ------------------------------------------------------------ expressions

    def int_(self, names: Names, depth: int = 2, *, uniform: bool = False) -> str:
        pool = names.uniform if uniform else names.ints
        if depth <= 0 or self.random.random() < 0.25:
            return self.random.choice([*pool, *pool, "0", "1", "2", "3", "5"])

        def sub() -> str:
            return self.int_(names, depth - 1, uniform=uniform)

        forms = [
            lambda: f"({sub()} {self.pick('+', '-', '*', '&', '|', '^')} {sub()})",
            lambda: f"({sub()} {self.pick('//', '%')} {self.pick('1', '2', '3', '-2')})",
            lambda: f"{self.pick('min', 'max')}({sub()}, {sub()})",
            lambda: f"({sub()} if {self.bool_(names, depth - 1, uniform=uniform)} else {sub()})",
            lambda: f"abs({sub()})",
            lambda: f"(1 << abs({sub()}) % 4)",
            lambda: f"log2ceil(1 + abs({sub()}))",
            lambda: f"share(abs({sub()}), 3, abs({sub()}) % 3)",
            lambda: f"-{sub()}",
        ]
        if not uniform:
            forms += [
                lambda: f"len({self.list_(names, depth - 1)})",
                lambda: f"sum({self.list_(names, depth - 1)})",
                lambda: f"max([{sub()}, {sub()}])",
                lambda: f"sum({sub()} for {self.loop_over(names, depth - 1, 'c')[0]})",
                lambda: f"{self.random.choice(names.groups)}.size",
                lambda: f"len({self.random.choice(names.flat)})",
                lambda: self.applied(names, depth),
                lambda: self.item(names, depth),
            ]
        return self.random.choice(forms)()

    def applied(self, names: Names, depth: int) -> str:
        if not names.functions:
            return self.int_(names, depth - 1)
        function = self.random.choice(names.functions)
        argument = self.int_(names, depth - 1)
        return function.format(f"({argument}) % 3")

    def item(self, names: Names, depth: int) -> str:
        """An item of a list, nearly always one that is there."""
        some = self.random.choice(names.lists)
        if self.random.random() < 0.3:
            return f"{some}[{self.pick('0', '-1')}]"
        return f"{some}[({self.int_(names, depth - 1)}) % max(1, len({some}))]"

    def bool_(self, names: Names, depth: int = 1, *, uniform: bool = False) -> str:
        a, b = (self.int_(names, depth, uniform=uniform) for _ in "ab")
        compare = f"{a} {self.pick('<', '<=', '==', '!=', '>')} {b}"
        if depth <= 0:
            return compare
        more = [
            lambda: compare,
            lambda: f"not ({compare})",
            lambda: (
                f"({compare} {self.pick('and', 'or')} "
                f"{self.bool_(names, depth - 1, uniform=uniform)})"
            ),
            lambda: f"0 <= {a} < {b}",
        ]
        if not uniform:
            more += [
                lambda: f"({a}) {self.pick('in', 'not in')} {self.list_(names, depth - 1)}",
                lambda: f"any({a} > 1 for {self.loop_over(names, depth - 1, 'c')[0]})",
                lambda: f"all(v0 > {a} for v0 in {self.list_(names, depth - 1)})",
            ]
        return self.random.choice(more)()

    def list_(self, names: Names, depth: int = 2) -> str:
        if depth <= 0 or self.random.random() < 0.2:
            return self.random.choice([*names.lists, "range(3)", "[2, 0, 1]"])

        def sub() -> str:
            return self.int_(names, depth - 1)

        def again() -> str:
            return self.list_(names, depth - 1)

        return self.random.choice(
            [
                lambda: f"range(abs({sub()}) % 4)",
                lambda: f"range({sub()} % 5, {sub()} % 5, {self.pick('1', '2', '-1', '-2')})",
                lambda: f"[{sub()}, {sub()}]",
                lambda: f"({again()} if {self.bool_(names, 0)} else {again()})",
                lambda: f"reversed({again()})",
                lambda: self.comprehension(names, depth),
                lambda: self.sliced(names, depth),
            ]
        )()

    def comprehension(self, names: Names, depth: int) -> str:
        head, inner = self.loop_over(names, depth - 1, "c")
        where = f" if {self.bool_(inner, 0)}" if self.random.random() < 0.5 else ""
        again = ""
        if self.random.random() < 0.3:
            second, inner = self.loop_over(inner, 0, "c")
            again = f" for {second}"
        return f"[{self.int_(inner, 1)} for {head}{where}{again}]"

    def sliced(self, names: Names, depth: int) -> str:
        some = self.random.choice(names.lists)
        size = f"(len({some}) + 1)"
        a, b = (f"({self.int_(names, depth - 1)}) % {size}" for _ in "ab")
        step = self.pick("", ":1", ":2")
        return self.pick(
            f"{some}[min({a}, {b}):max({a}, {b}){step}]", f"{some}[::2]", f"{some}[{a}:]"
        )

    def loop_over(self, names: Names, depth: int, stem: str) -> tuple[str, Names]:
        """`v in …` of a loop or a comprehension, and the names inside."""
        inner = names.inner()
        one, two = self.new(stem), self.new(stem)
        if self.random.random() < 0.15:
            one = self.random.choice([n for n in names.ints if n not in ("rank", "world")] or [one])
            inner.uniform = [n for n in inner.uniform if n != one]
        inner.ints.append(one)
        form = self.random.random()
        if form < 0.6:
            return f"{one} in {self.list_(names, depth)}", inner
        inner.ints.append(two)
        if form < 0.8:
            start = self.pick("", ", 2", f", {self.int_(names, 0)}")
            return f"{one}, {two} in enumerate({self.list_(names, depth)}{start})", inner
        if form < 0.9:
            return f"{one}, {two} in [[0, {self.int_(names, 1)}], [1, rank], [2, 2]]", inner
        some = self.list_(names, depth)
        return f"{one}, {two} in zip({some}, reversed({some}))", inner

    # ---------------------------------------------------------------- tensors

    def tensor(self, names: Names, depth: int = 2) -> str:
        """A tensor of one dim."""
        base = self.random.choice(names.flat)
        if depth <= 0 or self.random.random() < 0.4:
            return base

        def index() -> str:
            return self.int_(names, depth - 1)

        a, b = (f"({index()}) % (len({base}) + 1)" for _ in "ab")
        square = self.random.choice(names.square)
        k = self.pick("world", "2", "3", f"(1 + abs({index()}) % 4)")
        return self.random.choice(
            [
                lambda: f"{base}[min({a}, {b}):max({a}, {b})]",
                lambda: f"{base}[{a}:]",
                lambda: f"{base}.chunks({k})[abs({index()}) % {k}]",
                lambda: f"{base}.chunks({k})[min(abs({index()}) % {k}, 1):]",
                lambda: f"{square}[abs({index()}) % len({square})]",
                lambda: f"{square}.flatten()",
                lambda: f"{square}.chunks({k}, dim=1)[{k} - 1].flatten()",
                lambda: f"{square}[:, 0]",
                lambda: f"{square}.transpose(0, 1)[-1]",
                lambda: f"({base} if {self.bool_(names, 0)} else {self.random.choice(names.flat)})",
            ]
        )()

    # -------------------------------------------------------------- statements

    def statement(self, names: Names, depth: int, nest: str) -> list[str]:
        roll = self.random.random()
        if roll < 0.3:
            return [self.binding(names)]
        if roll < 0.6 and depth > 0:
            return self.compound(names, depth - 1, nest)
        if roll < 0.7 and not nest:
            return self.asynchronous(names)
        if roll < 0.8:
            return self.local(names, nest)
        return self.communication(names)

    def binding(self, names: Names) -> str:
        kind = self.random.randrange(8)
        name = self.new("v")
        if kind == 0:
            text = f"let {name} = {self.int_(names)}"
            names.ints.append(name)
        elif kind == 1:
            text = f"let {name} = {self.int_(names, uniform=True)}"
            names.ints.append(name)
            names.uniform.append(name)
        elif kind == 2:
            text = f"let {name} = {self.list_(names)}"
            names.lists.append(name)
        elif kind == 3:
            text = f"let {name} = {self.tensor(names)}"
            names.flat.append(name)
        elif kind == 4:
            inner = names.inner()
            inner.ints += ["a"]
            text = f"let {name}(a) = {self.int_(inner)}"
            names.functions.append(f"{name}({{}})")
        elif kind == 5:
            shape = self.pick(
                f"like {self.tensor(names, 1)}", f"float32[abs({self.int_(names)}) % 9]"
            )
            text = f"temp {name}: {shape}"
            names.flat.append(name)
        elif kind == 6:
            text = f"temp {name}: float32[abs({self.int_(names)}) % 4 + 1, 2]"
            names.square.append(name)
        else:
            text = f"group {name} = {self.members(names)}"
            names.groups.append(name)
            names.lists.append(name)
        return text

    def members(self, names: Names) -> str:
        k = self.pick("1", "2", "3")
        return self.pick(
            f"[r for r in ranks if r % {k} == rank % {k}]",
            f"ranks[{self.pick('0', '1 % world')}::{k}]",
            f"reversed([r for r in ranks if r // {k} == rank // {k}])",
            f"[r for r in ranks if r <= {self.int_(names, 1, uniform=True)}]",
        )

    def compound(self, names: Names, depth: int, nest: str) -> list[str]:
        def inside(n: Names, s: str) -> list[str]:
            return [f"    {line}" for line in self.block(n, depth, s)]

        kind = self.random.randrange(6)
        if kind <= 1:
            head, inner = self.loop_over(names, 2, "i")
            if self.random.random() < 0.4:
                name = self.new("i")
                head, inner = f"{name} in range({self.pick('2', 'world', 'k % 4')})", names.inner()
                inner.ints.append(name)
                inner.uniform.append(name)
            word = "parallel for" if kind == 1 else "for"
            return [f"{word} {head}:", *inside(inner, "p" if kind == 1 else nest)]
        if kind == 2:
            return ["parallel:", *inside(names.inner(), "p")]
        if kind == 3:
            return ["sequence:", *inside(names.inner(), nest)]
        lines = [f"if {self.bool_(names, 2)}:", *inside(names.inner(), nest)]
        if self.random.random() < 0.4:
            lines += [f"elif {self.bool_(names, 1)}:", *inside(names.inner(), nest)]
        if self.random.random() < 0.5:
            lines += ["else:", *inside(names.inner(), nest)]
        return lines

    def local(self, names: Names, nest: str) -> list[str]:
        tensor = self.tensor(names)
        name = self.new("t")
        return self.random.choice(
            [
                [f"fill({tensor}, {self.int_(names)})"],
                [f"scale({tensor}, {self.pick('1/2', '2', self.int_(names, 1))})"],
                [f'compute(2ms, "a", reads=[{tensor}, {self.tensor(names)}], writes={tensor})'],
                [f"compute(matmul=[{self.int_(names, 1)}, 2, 3])"],
                [f"work({tensor}, {self.tensor(names)}, {self.int_(names, 1)})"],
                [f"temp {name}: like {tensor}", f"{tensor} -> {name}"],
                [
                    f"temp {name}: like {tensor}",
                    f"{tensor} -> {name}, op={self.pick('sum', 'max')}",
                ],
                [f"let {name} = {tensor}", f"{name}[0:0] -> {self.tensor(names)}[0:0]"],
            ]
        )

    def asynchronous(self, names: Names) -> list[str]:
        if names.handles and self.random.random() < 0.5:
            handle = self.random.choice(names.handles)
            return [f"wait({handle})"]
        handle = self.new("h")
        names.handles.append(handle)
        indices = self.pick("", "", f"[{self.int_(names, 1)}]", f"[{self.int_(names, 1)}, rank]")
        if indices:
            names.handles.append(handle + indices)
        (line,) = self.message(names) if self.random.random() < 0.5 else self.collective(names)[-1:]
        line = line.strip()
        guard = self.collective_guard
        if guard:
            return [guard, f"    {handle}{indices} = async {line}"]
        return [f"{handle}{indices} = async {line}"]

    def communication(self, names: Names) -> list[str]:
        roll = self.random.random()
        if roll < 0.35:
            return self.message(names)
        if roll < 0.6:
            return self.transfer(names)
        if roll < 0.85:
            return self.collective(names)
        return self.call(names)

    collective_guard = ""

    def message(self, names: Names) -> list[str]:
        self.collective_guard = ""
        peer = self.pick("ranks.next", "ranks.prev", self.other("rank", names))
        tag = self.pick("", f", tag=abs({self.int_(names, 1)}) % 3")
        end = self.pick("send({}, dst={}{})", "recv({}, src={}{})")
        return [end.format(self.tensor(names), peer, tag)]

    def other(self, rank: str, names: Names, *, uniform: bool = False) -> str:
        """A rank that is not that one, if there is another."""
        more = self.int_(names, 1, uniform=uniform)
        return f"({rank} + 1 + abs({more}) % max(1, world - 1)) % world"

    def transfer(self, names: Names) -> list[str]:
        a = f"abs({self.int_(names, 1, uniform=True)}) % world"
        b = self.other(a, names, uniform=True)
        op = self.pick("", "", ", op=sum", ", op=max", ", tag=2")
        return [f"{self.tensor(names)} @ ({a}) -> {self.tensor(names)} @ ({b}){op}"]

    def collective(self, names: Names) -> list[str]:
        group = self.random.choice(names.groups)
        self.collective_guard = f"if rank in {group}:"
        on = "" if group == "ranks" else f", group={group}"
        t = self.tensor(names)
        chunks = f"{self.random.choice(names.flat)}.chunks({group}.size)"
        root = f"{group}[abs({self.int_(names, 1)}) % {group}.size]"
        line = self.pick(
            f"all_reduce({t}{on})",
            f"all_reduce({t}, op={self.pick('sum', 'max', 'avg', 'premul_sum(1/2)')}{on})",
            f"reduce({t}, dst={root}{on})",
            f"broadcast({t}, src={root}{on})",
            f"broadcast({t}, group_src=abs({self.int_(names, 1)}) % {group}.size{on})",
            f"all_gather({chunks}, {chunks}[{group}.index]{on})",
            f"reduce_scatter({chunks}[{group}.index], {chunks}{on})",
            f"all_to_all({chunks}, {chunks}{on})",
            f"all_to_all_single({t}, {t}, "
            f"input_split_sizes=[c.numel for c in {t}.chunks({group}.size)]{on})",
            f"all_gather([{t} for r in {group}], {t}{on})",
            "barrier(" + on[2:] + ")",
        )
        return [self.collective_guard, f"    {line}"]

    def call(self, names: Names) -> list[str]:
        t = self.tensor(names)
        if self.patterns and self.random.random() < 0.6:
            name = self.random.choice(self.patterns)
            square = self.random.choice([s for s in names.square if s in ("z",)])
            line = f"{name}({t}, {self.int_(names, 1, uniform=True)}, {square}"
        elif self.random.random() < 0.5:
            line = f"deep({t}, abs({self.int_(names, 1, uniform=True)}) % 4"
        else:
            line = f"halve({t}"
        group = self.random.choice(names.groups)
        if group == "ranks":
            return [line + ")"]
        return [f"if rank in {group}:", f"    {line}, group={group})"]
