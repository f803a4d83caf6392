"""Random valid pattern files, with comments and blanks in every place that allows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

NAMES = ("x", "y", "n", "inbox", "rank", "world", "ranks", "old", "range_")
SOFT = ("group", "op", "sum", "mesh", "cost", "like", "read", "temp", "let", "wait", "preset")
NUMBERS = ("0", "1", "12", "4Ki", "1_000", "2.5", "1e3", "3ms", "200T")
STRINGS = ('"a"', '""', '"# no comment ("', '"""one\ntwo  # [\n"""')
COMMENTS = ("#", "# note", "#tight  ", '# "quote', "# ( [ :", "# é → λ")
BINARY = ("+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^")
COMPARE = ("==", "!=", "<", ">", "<=", ">=", "in", "not in")
BLANKS = ("", "", " ", " ", "  ", "\t")


class Writer:
    """Writes one file; every choice is the generator's."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def maybe(self, chance: float = 0.3) -> bool:
        return self.random.random() < chance

    # ------------------------------------------------------------ expressions: lists of tokens

    def some(self, make: object, low: int = 1, high: int = 3) -> list[str]:
        """Items with commas between them."""
        tokens: list[str] = []
        for place in range(self.random.randint(low, high)):
            tokens += ([","] if place else []) + make()  # pyright: ignore[reportCallIssue]
        return tokens

    def name(self) -> list[str]:
        return [self.random.choice(NAMES if self.maybe(0.7) else SOFT)]

    def target(self) -> list[str]:
        return [self.random.choice(("a", "b", "n", "i", *SOFT))]

    def expr(self, depth: int) -> list[str]:
        if depth > 0 and self.maybe(0.1):
            return [*self.either(depth), "if", *self.either(depth), "else", *self.expr(depth - 1)]
        return self.either(depth)

    def either(self, depth: int) -> list[str]:
        tokens = self.compare(depth)
        while depth > 0 and self.maybe(0.15):
            tokens += [self.random.choice(("and", "or")), *self.compare(depth - 1)]
        return ["not", *tokens] if self.maybe(0.05) else tokens

    def compare(self, depth: int) -> list[str]:
        tokens = self.at(depth)
        while depth > 0 and self.maybe(0.15):
            tokens += [*self.random.choice(COMPARE).split(), *self.at(depth - 1)]
        return tokens

    def at(self, depth: int) -> list[str]:
        place = ["@", *self.arith(depth - 1)] if depth > 0 and self.maybe(0.15) else []
        return [*self.arith(depth), *place]

    def arith(self, depth: int) -> list[str]:
        tokens = self.factor(depth)
        while depth > 0 and self.maybe():
            tokens += [self.random.choice(BINARY), *self.factor(depth - 1)]
        return tokens

    def factor(self, depth: int) -> list[str]:
        sign = [self.random.choice("+-~")] if self.maybe(0.15) else []
        return [*sign, *self.postfix(depth)]

    def postfix(self, depth: int) -> list[str]:
        if depth <= 0 or self.maybe():
            pick = self.random.random()
            if pick < 0.3:
                return [self.random.choice(NUMBERS)]
            return [self.random.choice(STRINGS)] if pick < 0.35 else self.name()
        tokens = self.name() if self.maybe(0.7) else self.bracketed(depth - 1)
        while self.maybe(0.4):
            tokens = self.trailer(tokens, depth - 1)
        return tokens

    def bracketed(self, depth: int) -> list[str]:
        pick = self.random.random()
        if pick < 0.4:
            return ["(", *self.expr(depth), ")"]
        if pick < 0.6:
            return ["[", *self.expr(depth), *self.clauses(depth), "]"]
        if pick < 0.7:
            return ["(", *self.expr(depth), *self.clauses(depth), ")"]
        return ["[", *self.listed(lambda: self.expr(depth), 0), "]"]

    def listed(self, make: object, low: int) -> list[str]:
        tokens = self.some(make, low)
        return [*tokens, ","] if tokens and self.maybe(0.2) else tokens

    def trailer(self, base: list[str], depth: int) -> list[str]:
        pick = self.random.random()
        if pick < 0.2:
            return [*base, ".", *self.name()]
        if pick < 0.5:
            return [*base, "[", *self.listed(lambda: self.sub(depth), 1), "]"]
        return self.call(base, depth)

    def call(self, base: list[str], depth: int) -> list[str]:
        if self.maybe(0.15):
            return [*base, "(", *self.expr(depth), *self.clauses(depth), ")"]
        tokens = self.some(lambda: self.expr(depth), 0)
        keywords = self.some(lambda: self.keyword(depth), 0, 2)
        inside = [*tokens, *([","] if tokens and keywords else []), *keywords]
        return [*base, "(", *inside, *([","] if inside and self.maybe(0.2) else []), ")"]

    def keyword(self, depth: int) -> list[str]:
        return [*self.target(), "=", *self.expr(depth)]

    def sub(self, depth: int) -> list[str]:
        if self.maybe(0.5):
            return self.expr(depth)
        tokens = self.expr(depth) if self.maybe(0.6) else []
        tokens += [":", *(self.expr(depth) if self.maybe(0.6) else [])]
        if self.maybe(0.2):
            tokens += [":", *(self.expr(depth) if self.maybe(0.6) else [])]
        return tokens

    def clauses(self, depth: int) -> list[str]:
        tokens: list[str] = []
        for _ in range(self.random.randint(1, 2)):
            tokens += ["for", *self.some(self.target, 1, 2), "in", *self.either(depth)]
            tokens += ["if", *self.either(depth)] if self.maybe(0.3) else []
        return tokens

    def type(self) -> list[str]:
        name = [self.random.choice(("float32", "int", "bool"))]
        return [*name, "[", *self.listed(lambda: self.expr(1), 1), "]"] if self.maybe(0.7) else name

    # ------------------------------------------------------------ lines

    def line(self, indent: str, tokens: list[str]) -> str:
        """Tokens with blanks between them, newlines and comments too inside brackets."""
        text, depth, before = indent, 0, ""
        for token in tokens:
            gap = self.random.choice(BLANKS)
            if depth and self.maybe(0.04):
                gap = f"{self.random.choice(COMMENTS) if self.maybe() else ''}\n{gap}"
            if not gap and before[-1:].isalnum() and token[:1].isalnum():
                gap = " "
            if not gap and (before[-1:] == "_" or token[:1] == "_"):
                gap = " "
            text += (gap if before else "") + token
            before = token
            depth += (token in "([") - (token in ")]")
        text += self.random.choice(("", "", "", " ", "  " + self.random.choice(COMMENTS)))
        return f"{text}\n"

    def between(self) -> str:
        """Empty lines and comments, indented at will."""
        text = ""
        while self.maybe(0.2):
            text += self.random.choice(("", "  ", "\t"))
            text += self.random.choice(("", " " * self.random.randint(0, 12)))
            text += self.random.choice(("", self.random.choice(COMMENTS))) + "\n"
        return text

    def module(self) -> str:
        text = self.between()
        for _ in range(self.random.randint(0, 3)):
            text += self.random.choice((self.importing, self.extern, self.pattern))()
            text += self.between()
        return text.removesuffix("\n") if self.maybe() else text

    def importing(self) -> str:
        dots = self.random.choice(([], [], ["."], [".."]))
        names = self.some(lambda: ["a", "as", "b"] if self.maybe() else ["a"])
        return self.line(
            "", ["from", *dots, "ring", *[".", "sub"][: 2 * self.maybe()], "import", *names]
        )

    def head(self, word: str) -> list[str]:
        return [word, "p", "(", *self.listed(self.param, 0), ")"]

    def param(self) -> list[str]:
        tokens = self.target()
        if self.maybe(0.6):
            mode = [self.random.choice(("read", "write", "update"))] if self.maybe() else []
            tokens += [":", *mode, *self.type()]
        return [*tokens, "=", *self.expr(1)] if self.maybe() else tokens

    def extern(self) -> str:
        if self.maybe():
            return self.line("", self.head("extern"))
        text = self.line("", [*self.head("extern"), ":"])
        text += self.between() + self.line("  ", [self.random.choice(STRINGS)])
        if self.maybe():
            text += self.line("  ", ["cost", *self.expr(1)]) + self.between()
            text += self.line("  ", ["assume", *self.expr(2), *self.clauses(0)])
        return text

    def pattern(self) -> str:
        indent = self.random.choice((" ", "  ", "    ", "\t"))
        text = self.line("", [*self.head("pattern"), ":"]) + self.between()
        if self.maybe():
            text += self.line(indent, [self.random.choice(STRINGS)])
        for _ in range(self.random.randint(1, 4)):
            contract = self.maybe(0.2)
            text += self.contract(indent) if contract else self.statement(indent, 2)
            text += self.between()
        return text

    def contract(self, indent: str) -> str:
        axes = self.some(lambda: [*self.target(), "=", *self.expr(1)])
        return self.line(
            indent,
            self.random.choice(
                (
                    ["require", *self.expr(2), *[",", '"why"'][: 2 * self.maybe()]],
                    ["ensure", *self.expr(2), *self.clauses(1)],
                    ["preset", "small", ":", *axes],
                    ["mesh", *axes],
                )
            ),
        )

    def block(self, indent: str, depth: int) -> str:
        inner = indent + self.random.choice((" ", "   ", "\t"))
        statements = (self.statement(inner, depth) for _ in range(self.random.randint(1, 2)))
        return "".join(self.between() + statement for statement in statements)

    def statement(self, indent: str, depth: int) -> str:
        if depth > 0 and self.maybe():
            return self.compound(indent, depth - 1)
        return self.line(indent, self.simple())

    def compound(self, indent: str, depth: int) -> str:
        loop = ["for", *self.some(self.target, 1, 2), "in", *self.expr(1), ":"]
        if self.maybe(0.5):
            heads = (loop, ["parallel", *loop], ["parallel", ":"], ["sequence", ":"])
            return self.line(indent, self.random.choice(heads)) + self.block(indent, depth)
        text = self.line(indent, ["if", *self.expr(2), ":"]) + self.block(indent, depth)
        if self.maybe():
            text += self.between()
            text += self.line(indent, ["elif", *self.expr(1), ":"]) + self.block(indent, depth)
        if self.maybe():
            text += self.line(indent, ["else", ":"]) + self.block(indent, depth)
        return text

    def simple(self) -> list[str]:
        operation = self.operation()
        params = self.some(self.target)
        return self.random.choice(
            (
                ["pass"],
                ["wait", "(", *self.expr(1), ")"],
                ["let", *self.target(), "=", *self.expr(3)],
                ["let", "f", "(", *params, ")", "=", *self.expr(2)],
                ["group", *self.target(), "=", *self.expr(2)],
                ["temp", *self.target(), ":", *self.type()],
                ["temp", "inbox", ":", "like", *self.expr(1)],
                ["work", "=", "async", *operation],
                ["work", "[", "i", ",", *self.expr(1), "]", "=", "async", *operation],
                operation,
            )
        )

    def operation(self) -> list[str]:
        if self.maybe():
            return self.call(["send"], 3)
        tokens = ["x", *(["@", *self.arith(1)] if self.maybe() else []), "->", *self.arith(2)]
        tokens += ["@", *self.arith(1)] if self.maybe() else []
        return [*tokens, ",", *self.keyword(1)] if self.maybe() else tokens
