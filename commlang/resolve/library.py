"""The shipped pattern library, by name."""

from __future__ import annotations

from pathlib import Path, PurePath

from commlang import resources
from commlang.diagnostics import nearest
from commlang.errors import UsageError

SUFFIX = ".cl"


def library_files() -> list[Path]:
    """Every file of the library, topic by topic."""
    return sorted(resources.patterns_dir().rglob(f"*{SUFFIX}"))


def library_name(path: Path) -> str:
    """The name that finds a library file again: `point_to_point/ring_all_reduce`."""
    return path.relative_to(resources.patterns_dir()).with_suffix("").as_posix()


def library_file(name: str) -> Path:
    """The file of `ring_all_reduce`, `point_to_point/ring_all_reduce` or the dotted form of it.

    Raises UsageError, with the nearest name, if there is none or more than one.
    """
    wanted = PurePath(name.removesuffix(SUFFIX).replace(".", "/")).as_posix()
    known = {library_name(path): path for path in library_files()}
    found = [n for n in known if n == wanted or PurePath(n).name == wanted]
    if len(found) == 1:
        return known[found[0]]
    if found:
        raise UsageError(f"`{name}` names several library files: write {' or '.join(found)}")
    short = {PurePath(n).name: n for n in known}
    near = nearest(wanted, [*known, *short])
    hint = f"did you mean `{near}`?" if near else "`commlang list` shows them all"
    raise UsageError(f"the pattern library has no `{name}`; {hint}")
