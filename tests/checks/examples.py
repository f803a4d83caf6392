"""The examples on the pages of rules, as tests: which line is to be found, and for which target."""

from __future__ import annotations

import re
from dataclasses import dataclass

from commlang.checks.selection import Selection
from commlang.source import Source
from commlang.transports import Backend, NcclInit, Target
from commlang.verify import Choice, Options, lint_source
from commlang.version import TORCH

HEADER = re.compile(r"# (world|backend|nccl-init|device|torch|ranks-per-node|pattern): (\S+)$")
MARK = re.compile(r"  # (CL\d{3})$")


@dataclass(frozen=True, slots=True)
class Example:
    """A text with the options that its header names, and its marks as (line, code)."""

    text: str

    @property
    def header(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for line in self.text.splitlines():
            match = HEADER.fullmatch(line)
            if match is None:
                break
            found[match[1]] = match[2]
        return found

    @property
    def marks(self) -> list[tuple[int, str]]:
        lines = enumerate(self.text.splitlines(), start=1)
        return [(number, match[1]) for number, line in lines if (match := MARK.search(line))]

    def options(self, code: str) -> Options:
        """What it is checked with: all rules but advice, and the rule at hand."""
        header = self.header
        backend = Backend(header["backend"]) if "backend" in header else None
        init = NcclInit(header.get("nccl-init", "lazy"))
        return Options(
            choice=Choice(world=int(header["world"]) if "world" in header else None),
            target=Target(
                backend,
                init,
                header.get("device"),
                int(header["ranks-per-node"]) if "ranks-per-node" in header else None,
                header.get("torch", TORCH),
            ),
            selection=Selection(select=("ALL", code)),
        )

    def found(self, code: str) -> list[tuple[int, str]]:
        """The findings as (line, code), in the order of lines."""
        outcome = lint_source(
            Source(self.text, "example.cl"), self.header.get("pattern"), self.options(code)
        )
        assert not outcome.notes
        places: list[tuple[int, str]] = []
        for found in outcome.findings:
            label = found.labels[0]
            places.append((label.source.position(label.span.start)[0], found.code))
        return sorted(places)
