"""From a name or a file to a machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from commlang.diagnostics import nearest
from commlang.errors import UsageError
from commlang.source import Source
from commlang.topology.model import Collective, Compute, Level, Link, Machine

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from commlang.topology.marked import Marked

FOLDER = Path(__file__).resolve().parent / "machines"
SUFFIXES = (".yaml", ".yml", ".xml")
_MODELS = {"links": Link, "levels": Level, "compute": Compute, "collectives": Collective}


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
    path = Path(name)
    if not path.suffix and "/" not in name and not path.exists():
        near = nearest(name, machine_names())
        hint = f"did you mean `{near}`?" if near else f"there are {', '.join(machine_names())}"
        raise UsageError(f"there is no machine `{name}`; {hint} Or give a file, .yaml or .xml")
    return Source.read(path)


def read_machine(source: Source) -> Machine:
    """The machine that a text describes, of whichever of the three formats it is."""
    if source.text.lstrip()[:1] == "<":
        from commlang.topology.nccl import read_nccl

        return read_nccl(source.text, source.path)
    from commlang.topology.marked import read_yaml

    marked = read_yaml(source.text, source.path)
    if not isinstance(marked.data, dict):
        raise UsageError(f"{source.path} is no machine: it must have `name`, `links` and `levels`")
    if "npus_count" in marked.data:
        from commlang.topology.astra import read_astra

        return read_astra(marked)
    return _validated(marked)


def _validated(marked: Marked) -> Machine:
    from pydantic import ValidationError

    try:
        return Machine.model_validate(marked.data)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            f"{marked.where(first['loc'])}: {_said(first)}"
            + (f" ({more} more)" if (more := error.error_count() - 1) else "")
        ) from None


def _said(error: ErrorDetails) -> str:
    """What pydantic found, by key path, and for an unknown key those that there are."""
    keys = ".".join(map(str, error["loc"]))
    if error["type"] != "extra_forbidden":
        text = error["msg"].removeprefix("Value error, ")
        return f"{keys}: {text}" if keys else text
    model: Any = _MODELS.get(str(error["loc"][0]), Machine) if len(error["loc"]) > 1 else Machine
    key = str(error["loc"][-1])
    near = nearest(key, model.model_fields)
    hint = f"did you mean `{near}`?" if near else f"there are {', '.join(model.model_fields)}"
    return f"{keys}: no such key; {hint}"
