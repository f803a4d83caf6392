"""Located findings with stable codes, and their text form."""

from __future__ import annotations

from dataclasses import field
from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING

from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlang.source import Source, Span

MAX_EXCERPT = 160


class Severity(StrEnum):
    """How much a finding matters: an error refuses the pattern, a warning or advice does not."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"


@record
class Label:
    """A place in a source and what is to be said of it."""

    source: Source
    span: Span
    text: str = ""

    def where(self) -> str:
        """`path:line:column` of the place."""
        return self.source.where(self.span)

    def render(self, gutter: int) -> list[str]:
        """The excerpt with a caret line; `gutter` is the width of the line numbers."""
        line, column = self.source.position(self.span.start)
        text = _printable(self.source.line(line))
        width = max(1, min(self.span.end - self.span.start, len(text) - column + 1))
        shift = 0
        if len(text) > MAX_EXCERPT:  # keep the marked part in sight
            shift = max(0, column - 1 - MAX_EXCERPT // 4)
            text = text[shift : shift + MAX_EXCERPT]
            width = min(width, MAX_EXCERPT - (column - 1 - shift))
        note = f" {self.text}" if self.text else ""
        pad = " " * gutter
        return [
            f"{pad} --> {self.where()}",
            f"{pad} |",
            f"{line:>{gutter}} | {text}",
            f"{pad} | {' ' * (column - 1 - shift)}{'^' * max(1, width)}{note}",
        ]


@record
class Edit:
    """New text for a span of a source."""

    span: Span
    text: str


@record
class Fix:
    """Edits of one source that mend a finding without a person's judgement; they do not overlap."""

    source: Source
    edits: tuple[Edit, ...]

    def apply(self) -> str:
        """The text of the source with the edits made."""
        text: list[str] = []
        at = 0
        for edit in sorted(self.edits, key=lambda edit: edit.span):
            text += (self.source.text[at : edit.span.start], edit.text)
            at = edit.span.end
        return "".join([*text, self.source.text[at:]])


@record
class Diagnostic:
    """One finding: a stable code, what is wrong, where, why it matters and what to write.

    `labels[0]` is the place of the finding; further labels are places that disagree
    with it. `notes` explain (a deadlock's cycle, for example), `help` says what to write, and `fix`
    writes it, where that is mechanical.
    """

    code: str
    message: str
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str | None = None
    severity: Severity = Severity.ERROR
    extra: dict[str, object] = field(default_factory=dict[str, object])
    fix: Fix | None = None

    def where(self) -> str:
        """`path:line:column` of the finding, or an empty string."""
        return self.labels[0].where() if self.labels else ""

    def render(self) -> str:
        """The finding as text for a terminal."""
        lines = [f"{self.severity}[{self.code}]: {self.message}"]
        numbers = [label.source.position(label.span.start)[0] for label in self.labels]
        gutter = len(str(max(numbers, default=1)))
        for label in self.labels:
            lines += label.render(gutter)
        for note in self.notes:
            head, *rest = note.split("\n")
            lines.append(f"{' ' * gutter} = {head}")
            lines += [f"{' ' * gutter}   {line}" for line in rest]
        if self.help:
            head, *rest = self.help.split("\n")
            lines.append(f"{' ' * gutter} = help: {head}")
            lines += [f"{' ' * gutter}         {line}" for line in rest]
        return "\n".join(lines)


def _printable(text: str) -> str:
    """One column per character: tabs as blanks, what a terminal would act on as `?`."""
    return "".join(c if c.isprintable() else " " if c == "\t" else "?" for c in text)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` was probably meant to be."""
    matches = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A help line naming the nearest known name, if one is near."""
    match = nearest(name, known)
    return f"did you mean `{match}`?" if match else None
