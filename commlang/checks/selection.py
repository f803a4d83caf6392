"""Which rules are asked for: codes and their beginnings, as in `CL4` or `CL231`."""

from __future__ import annotations

from commlang.records import record

ALL = "ALL"


@record
class Selection:
    """Codes that are wanted; the longest beginning that fits decides, `ignore` on a tie.

    Advice on speed (CL4) is given only to those who ask for it.
    """

    select: tuple[str, ...] = (ALL,)
    ignore: tuple[str, ...] = ("CL4",)

    def wants(self, code: str) -> bool:
        """Whether findings of a code are wanted."""
        return _longest(self.select, code) > _longest(self.ignore, code)

    def wants_some(self, prefix: str) -> bool:
        """Whether findings of some codes with a beginning may be wanted."""
        longer = any(chosen.startswith(prefix) for chosen in self.select)
        return longer or self.wants(prefix)


def _longest(prefixes: tuple[str, ...], code: str) -> int:
    fitting = [0 if prefix == ALL else len(prefix) for prefix in prefixes if _fits(prefix, code)]
    return max(fitting, default=-1)


def _fits(prefix: str, code: str) -> bool:
    return prefix == ALL or code.startswith(prefix)


DEFAULT = Selection()
