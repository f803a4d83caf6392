"""From a name or a file to a machine."""

from __future__ import annotations

from pathlib import Path

from commlang.diagnostics import nearest
from commlang.errors import UsageError
from commlang.source import Source
from commlang.topology.astra import read_astra
from commlang.topology.marked import read_yaml
from commlang.topology.model import Machine
from commlang.topology.nccl import read_nccl
from commlang.topology.validate import validated

FOLDER = Path(__file__).resolve().parent / "machines"


def machine_names() -> list[str]:
    """The names of the shipped machines, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load_machine(name_or_path: str | Path) -> Machine:
    """A shipped machine by its name, or one from a file.

    A file is a machine of commlang (YAML), a network of ASTRA-sim's analytical back end (YAML), or
    a topology of NCCL (XML). Raises UsageError for what is none, with the place of the mistake.
    """
    return read_machine(machine_source(name_or_path))


def machine_source(name_or_path: str | Path) -> Source:
    """The text behind a shipped name or a path; raises UsageError if there is none."""
    name = str(name_or_path)
    if name in machine_names():
        return Source.read(FOLDER / f"{name}.yaml")
    if not name:
        raise UsageError("an empty name names no machine; `commlang topology` lists them")
    if "/" not in name and "." not in name and not _exists(name):
        near = nearest(name, machine_names())
        hint = f"did you mean `{near}`?" if near else f"there are {', '.join(machine_names())},"
        raise UsageError(f"there is no machine `{name}`; {hint} or give a file, .yaml or .xml")
    return Source.read(name)


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):
        return False


def read_machine(source: Source) -> Machine:
    """The machine that a text describes, of whichever of the three formats it is."""
    if source.text.lstrip()[:1] == "<":
        return read_nccl(source.text, source.path)
    marked = read_yaml(source.text, source.path)
    if not marked.keys:
        raise UsageError(f"{source.path} is no machine: it must have `name`, `links` and `levels`")
    if "npus_count" in marked.keys:
        return read_astra(marked)
    return validated(marked, Machine)


def is_own_format(source: Source) -> bool:
    """Whether a text that describes a machine does so as a machine of commlang."""
    if source.text.lstrip()[:1] == "<":
        return False
    return "npus_count" not in read_yaml(source.text, source.path).keys


def write_yaml(machine: Machine) -> str:
    """A machine as YAML that reads as the same one: numbers in SI, no comments."""
    import yaml

    data = machine.model_dump(mode="json", exclude_defaults=True)
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
