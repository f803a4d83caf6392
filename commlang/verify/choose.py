"""Which pattern of a file is meant."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from commlang.diagnostics import nearest
from commlang.errors import PatternError, UsageError
from commlang.resolve.check import check_all
from commlang.resolve.modules import load_module
from commlang.syntax import ast
from commlang.verify.locate import locate_source, split_target

if TYPE_CHECKING:
    from commlang.resolve.modules import Definition, Module

MAIN = "main"


def choose_pattern(module: Module, name: str | None = None) -> Definition:
    """The pattern of that name; without one `main`, the file's namesake, or its only pattern.

    Raises UsageError, which lists the patterns of the file, if that does not settle it.
    """
    if name is None:
        name = _default(module)
    if name not in module.exported:
        raise UsageError(_unknown(module, name))
    return module.symbols[name]


def find_pattern(target: str) -> Definition:
    """The pattern that `FILE`, `FILE:PATTERN` or a library name means, statically checked.

    Raises UsageError if the target names none, PatternError with what is wrong in the files.
    """
    file, name = split_target(target)
    module = load_module(locate_source(file))
    faults = check_all(module)
    if faults:
        raise PatternError(faults)
    return choose_pattern(module, name)


def _default(module: Module) -> str:
    path, exported = module.source.path, module.exported
    for name in (MAIN, PurePath(path).stem):
        if name in exported:
            return name
    if len(exported) == 1:
        return exported[0]
    if not exported:
        raise UsageError(f"{path} has no pattern")
    raise UsageError(f"{path} has several patterns: write {_choices(module)}")


def _unknown(module: Module, name: str) -> str:
    path = module.source.path
    found = module.symbols.get(name)
    if found is not None and isinstance(found.node, ast.Extern):
        return f"`{name}` in {path} is an extern, not a pattern"
    if not module.exported:
        return f"{path} has no pattern"
    near = nearest(name, module.exported)
    hint = f"did you mean `{near}`?" if near else f"write {_choices(module)}"
    return f"{path} has no pattern `{name}`; {hint}"


def _choices(module: Module) -> str:
    return " or ".join(f"{module.source.path}:{name}" for name in module.exported)
