"""Python names for the names of a pattern, which nest in blocks where Python's do not."""

from __future__ import annotations

import keyword

_PYTHON = """
abs all any dict dist enumerate float int len list max min range reversed set sorted sum super tuple
zip threading time torch Fraction argparse os print property str type timedelta
"""
_OURS = "group rank world messages received works incoming into how branch main"
RESERVED = frozenset((*_PYTHON.split(), *_OURS.split()))
"""What a script means by itself: names of a pattern that are the same get a number."""


class Names:
    """The names that are visible at a point of one function; blocks are pushed and popped."""

    def __init__(self, taken: frozenset[str]) -> None:
        self._taken = taken
        self._scopes: list[dict[str, str]] = [{}]

    def push(self) -> None:
        """Open a block."""
        self._scopes.append({})

    def pop(self) -> None:
        """Close the block that was opened last."""
        self._scopes.pop()

    @property
    def depth(self) -> int:
        """How many blocks are open."""
        return len(self._scopes)

    def since(self, depth: int) -> set[str]:
        """The Python names bound in blocks from that depth on."""
        return {name for scope in self._scopes[depth:] for name in scope.values()}

    def look_up(self, name: str) -> str | None:
        """The Python name of a visible name, or None."""
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    def declare(self, name: str) -> str:
        """Bind a name in the innermost block; one that hides another gets a number."""
        visible = {known for scope in self._scopes for known in scope.values()}
        found = free_name(name, self._taken | visible)
        self._scopes[-1][name] = found
        return found

    def bind(self, name: str, text: str) -> None:
        """Have a name stand for a text."""
        self._scopes[-1][name] = text

    def declare_apart(self, name: str) -> str:
        """A Python name for something that the pattern's values cannot mean by this name."""
        found = self.declare(name)
        del self._scopes[-1][name]
        self._taken |= {found}
        return found


def free_name(name: str, taken: frozenset[str] | set[str]) -> str:
    """The name itself, or with a number behind it if it is taken or a word of Python."""
    found, number = name, 1
    while found in taken or keyword.iskeyword(found):
        number += 1
        found = f"{name}_{number}"
    return found
