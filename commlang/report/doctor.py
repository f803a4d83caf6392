"""What `commlang doctor` prints: the machine and the advice, for people and for programs."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from commlang.doctor import GENERAL, Severity
from commlang.report.text import bytes_text, counted, seconds_text
from commlang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commlang.diagnostics import Diagnostic
    from commlang.doctor import Advice, Lookup, Probe

VERSION = 1
"""Of the JSON form; it grows when a field changes its meaning or goes."""


def render(probe: Probe, advice: Sequence[Advice], findings: Sequence[Diagnostic] | None) -> str:
    """For a terminal; `findings` are those on a pattern, if one was given."""
    parts = ["\n".join(_machine(probe)), _section("Of this machine", advice)]
    if findings is not None:
        told = [f"\n{found.render()}" for found in findings] or ["  nothing"]
        parts.append("\n".join(["Of the pattern", *told]))
    parts += [_section("General practice, not probed here", GENERAL), _summary(advice)]
    return "\n\n".join(parts)


def doctor_json(
    probe: Probe, advice: Sequence[Advice], findings: Sequence[Diagnostic] | None
) -> dict[str, Any]:
    """The same as JSON data: `probe` by the names of `commlang.doctor.Probe`, `advice` and
    `general` with `code`, `severity`, `fact`, `why`, `todo` and `source`, and `findings` as in
    `commlang lint --output-format json`, None without a pattern."""
    from commlang.report.lint import finding_json

    return {
        "version": VERSION,
        "commlang": __version__,
        "ok": not broken(advice, findings),
        "probe": asdict(probe),
        "advice": [asdict(found) for found in advice],
        "findings": None if findings is None else [finding_json(found) for found in findings],
        "general": [asdict(found) for found in GENERAL],
    }


def broken(advice: Sequence[Advice], findings: Sequence[Diagnostic] | None) -> bool:
    """Whether something will fail, of the machine or of the pattern."""
    of_machine = any(found.severity is Severity.BROKEN for found in advice)
    return of_machine or any(found.severity == "error" for found in findings or ())


_TOLD: dict[Severity, Callable[[int], str]] = {
    Severity.BROKEN: lambda n: f"{n} broken",
    Severity.WARNING: lambda n: counted(n, "warning"),
    Severity.ADVICE: lambda n: f"{counted(n, 'piece')} of advice",
}


def _machine(probe: Probe) -> list[str]:
    torch = f"torch {probe.torch}" if probe.torch else "no torch"
    built = [f"{name} {number}" for name, number in probe.build.items()]
    head = f"{', '.join([torch, *built])}; Python {probe.python}; host {probe.host}"
    rows = {
        "backends": _backends(probe),
        "devices": _devices(probe),
        "processors": _processors(probe),
        "memory": _memory(probe),
        "limits": ", ".join(_limit(name, value) for name, value in probe.limits.items()),
        "network": _listed([*probe.network, *probe.infiniband]) or "no card that tells its speed",
        "names": "; ".join(filter(None, map(_name, (probe.own_name, probe.master)))),
        "variables": _listed([f"{n}={value}" for n, value in probe.variables.items()]) or "none",
    }
    return [head, *(f"  {name:<12}{text}" for name, text in rows.items() if text)]


def _backends(probe: Probe) -> str:
    there = [f"{n} {v}".strip() for n, v in probe.backends.items() if v is not None]
    missing = [name for name, found in probe.backends.items() if found is None]
    parts = [_listed(there) or "none"]
    if probe.mpi4py:
        parts.append(f"commlang_mpi by mpi4py {probe.mpi4py}")
    if missing:
        parts.append(f"torch is built without {_listed(missing)}")
    return "; ".join(parts)


def _devices(probe: Probe) -> str:
    kinds = Counter((device.name, bytes_text(device.memory)) for device in probe.devices)
    found = [
        f"{n} {name} ({memory} each)" if n > 1 else f"{name} ({memory})"
        for (name, memory), n in kinds.items()
    ]
    links = [f"{count} pairs by {kind}" for kind, count in probe.links.items()]
    return "; ".join(filter(None, (_listed(found) or "no GPU", _listed(links))))


def _processors(probe: Probe) -> str:
    quota = f", of which {probe.quota:g} are granted" if probe.quota is not None else ""
    nodes = "1 NUMA node" if probe.numa_nodes == 1 else f"{probe.numa_nodes} NUMA nodes"
    return f"{probe.cores} cores{quota}, {nodes}"


def _memory(probe: Probe) -> str:
    sizes = {"": (probe.memory, probe.memory_free), "/dev/shm ": (probe.shm, probe.shm_free)}
    return ", ".join(
        f"{name}{bytes_text(size)} ({bytes_text(free)} free)"
        for name, (size, free) in sizes.items()
        if size is not None and free is not None
    )


def _limit(name: str, value: int) -> str:
    shown = bytes_text(value) if name == "memlock" else f"{value:,}"
    return f"{name} {'unlimited' if value < 0 else shown}"


def _name(found: Lookup | None) -> str:
    if found is None:
        return ""
    if found.address is None:
        return f"{found.name} has no address ({found.error})"
    return f"{found.name} is {found.address}, told in {seconds_text(found.seconds)}"


def _section(title: str, advice: Sequence[Advice]) -> str:
    return "\n".join(
        [title, *(_advice(found) for found in advice)] if advice else [title, "  nothing"]
    )


def _advice(found: Advice) -> str:
    severity = "" if found in GENERAL else f" {found.severity}"
    rows = {"why": found.why, "do": found.todo, "see": found.source}
    lines = [f"      {f'{name}:':<5}{text}" for name, text in rows.items()]
    return "\n".join([f"  {found.code}{severity}: {found.fact}", *lines])


def _summary(advice: Sequence[Advice]) -> str:
    counts = {severity: sum(a.severity is severity for a in advice) for severity in Severity}
    told = [_TOLD[severity](count) for severity, count in counts.items() if count]
    return _listed(told) or "nothing to say of this machine"


def _listed(parts: Sequence[str]) -> str:
    return ", ".join(parts)
