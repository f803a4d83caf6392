"""From the path of an import to a file."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from commlang import resources
from commlang.diagnostics import nearest
from commlang.records import record

if TYPE_CHECKING:
    from commlang.syntax import ast

SUFFIX = ".cl"


@record
class NotFound:
    """Why an import names no file, and what to write instead."""

    message: str
    hint: str | None = None


def locate(node: ast.Import, folder: Path) -> Path | NotFound:
    """The file that an import in a file of `folder` names.

    Without dots the file's own folder is searched first, then the shipped library, by path and
    last by bare file name. One dot is the file's folder, each further dot the folder above.
    """
    if node.level:
        base = Path(os.path.normpath(folder.joinpath(*[".."] * (node.level - 1))))
        path = _file(base, node.path)
        return path or _missing(node, base)
    library = resources.patterns_dir()
    path = _file(folder, node.path) or _file(library, node.path)
    if path is not None:
        return path
    same = _anywhere(library, node.path[0]) if len(node.path) == 1 else []
    if len(same) > 1:
        names = " or ".join(f"`from {dotted(p, library)} import …`" for p in same)
        return NotFound(f"`{written(node)}` names several library files", f"write {names}")
    return same[0] if same else _missing(node, folder)


def per_file(node: ast.Import, folder: Path) -> list[ast.Import]:
    """An import as imports of single files: one that names a folder has a file for each name."""
    if not isinstance(locate(node, folder), NotFound):
        return [node]
    bases = [folder.joinpath(*[".."] * (node.level - 1))]
    bases += [] if node.level else [resources.patterns_dir()]
    if not any(_stems(base.joinpath(*node.path)) for base in bases):
        return [node]
    return [replace(node, path=(*node.path, name.name), names=(name,)) for name in node.names]


def written(node: ast.Import) -> str:
    """The path of an import as its author wrote it."""
    return "." * node.level + ".".join(node.path)


def dotted(path: Path, base: Path) -> str:
    """The import path of a file below `base`."""
    return ".".join(path.relative_to(base).with_suffix("").parts)


def _file(base: Path, parts: tuple[str, ...]) -> Path | None:
    path = base.joinpath(*parts[:-1], parts[-1] + SUFFIX)
    return path if os.path.isfile(path) else None  # noqa: PTH113 (Path.is_file raises on some names)


def _anywhere(library: Path, stem: str) -> list[Path]:
    return sorted(library.rglob(stem + SUFFIX))


def _missing(node: ast.Import, folder: Path) -> NotFound:
    looked = f"there is no {Path(*node.path).with_suffix(SUFFIX)} in {folder}"
    if node.level:
        return NotFound(looked, _hint(node, [folder]))
    looked += ", nor in the pattern library"
    return NotFound(looked, _hint(node, [folder, resources.patterns_dir()]))


def _hint(node: ast.Import, folders: list[Path]) -> str | None:
    """The nearest file, as an import would write it, or what the named folder holds."""
    dots = "." * node.level
    prefix = dots + "".join(f"{part}." for part in node.path[:-1])
    inside = [stem for base in folders for stem in _stems(base.joinpath(*node.path[:-1]))]
    known = {stem: prefix + stem for stem in inside}
    for path in sorted(folders[-1].rglob("*" + SUFFIX)) if not node.level else ():
        known.setdefault(path.stem, dotted(path, folders[-1]))
    near = nearest(node.path[-1], known)
    if near:
        return f"did you mean `{known[near]}`?"
    if inside and len(node.path) > 1:
        return f"the files there are {', '.join(dict.fromkeys(inside))}"
    return None


def _stems(folder: Path) -> list[str]:
    try:
        return sorted(path.stem for path in folder.iterdir() if path.suffix == SUFFIX)
    except OSError:
        return []
