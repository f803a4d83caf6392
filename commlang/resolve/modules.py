"""Pattern files with what they import: who defines each name."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from commlang.diagnostics import Diagnostic, Label, did_you_mean
from commlang.errors import PatternError, UsageError
from commlang.records import entity
from commlang.resolve.locate import NotFound, locate, per_file, written
from commlang.source import Source
from commlang.syntax import ast
from commlang.syntax.parser import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlang.source import Span

MAX_FILES = 256
"""Most files that one pattern file may draw in."""


@entity
class Definition:
    """A pattern or extern and the file that defines it."""

    node: ast.Pattern | ast.Extern
    module: Module


@dataclass(slots=True, eq=False)
class Module:
    """One file: `symbols` are its own definitions and its imports, by the name used here."""

    source: Source
    tree: ast.Module
    symbols: dict[str, Definition] = field(default_factory=dict[str, Definition])
    imports: list[tuple[ast.Import, Module]] = field(
        default_factory=list["tuple[ast.Import, Module]"]
    )
    importer: tuple[Module, ast.Import] | None = None
    """Who drew this file in first, for messages about it; None for the file asked for."""

    @property
    def exported(self) -> tuple[str, ...]:
        """The file's own patterns, in order."""
        return tuple(item.name for item in self.tree.items if isinstance(item, ast.Pattern))

    def definitions(self) -> Iterator[ast.Pattern | ast.Extern]:
        """The file's own patterns and externs, in order."""
        for item in self.tree.items:
            if not isinstance(item, ast.Import):
                yield item

    def reachable(self) -> list[Module]:
        """This file and all that it draws in, in the order of their imports."""
        found: list[Module] = [self]
        seen: set[Module] = {self}
        for reached in found:  # grows while modules are found
            for _, module in reached.imports:
                if module not in seen:
                    seen.add(module)
                    found.append(module)
        return found

    def digest(self) -> str:
        """SHA-256 over this source and all it draws in, the same wherever the files lie."""
        import hashlib

        modules = self.reachable()
        number = {module: i for i, module in enumerate(modules)}
        digest = hashlib.sha256()
        for module in modules:
            text = module.source.text.encode(errors="surrogatepass")
            links = " ".join(str(number[imported]) for _, imported in module.imports)
            digest.update(f"{len(text)} {links}\n".encode() + text)
        return digest.hexdigest()

    def origin(self) -> tuple[str, ...]:
        """Notes that say which import drew this file in; none for the file asked for."""
        if self.importer is None:
            return ()
        module, node = self.importer
        return (f"imported at {module.source.where(node.span)}",)


def load_module(source: Source) -> Module:
    """Parse a source and all it imports; raises PatternError with every fault found.

    Relative imports start from the folder of `source.path`; text that has no file starts from
    the working directory. Files may import one another.
    """
    loader = _Loader(source)
    loader.load()
    if not loader.faults:  # a missing file would seem to lack names too
        loader.link()
    if loader.faults:
        raise PatternError(loader.faults)
    return loader.root


class _Loader:
    """The files of one `load_module`: first all are read, then names are tied to definitions."""

    def __init__(self, source: Source) -> None:
        self.root = Module(source, parse(source))
        self.modules = [self.root]
        self.faults: list[Diagnostic] = []
        self.seen: dict[Path, Module | None] = {Path(source.path).resolve(): self.root}

    def load(self) -> None:
        for module in self.modules:  # grows while files are found
            folder = Path(module.source.path).parent
            for item in module.tree.items:
                for node in per_file(item, folder) if isinstance(item, ast.Import) else ():
                    imported = self._import(module, node, folder)
                    if imported is not None:
                        module.imports.append((node, imported))

    def _import(self, module: Module, node: ast.Import, folder: Path) -> Module | None:
        path = locate(node, folder)
        if isinstance(path, NotFound):
            return self._fault(module, node.span, path.message, path.hint)
        key = path.resolve()
        if key not in self.seen:
            if len(self.seen) >= MAX_FILES:
                return self._fault(module, node.span, f"more than {MAX_FILES} files are imported")
            self.seen[key] = self._read(path, module, node)
        return self.seen[key]

    def _read(self, path: Path, module: Module, node: ast.Import) -> Module | None:
        try:
            source = Source.read(path)
        except UsageError as error:
            return self._fault(module, node.span, str(error))
        try:
            imported = Module(source, parse(source), importer=(module, node))
        except PatternError as error:
            note = f"imported at {module.source.where(node.span)}"
            self.faults += [replace(d, notes=(*d.notes, note)) for d in error.diagnostics]
            return None
        self.modules.append(imported)
        return imported

    def _fault(self, module: Module, span: Span, message: str, hint: str | None = None) -> None:
        label = Label(module.source, span)
        self.faults.append(Diagnostic("CL106", message, (label,), module.origin(), hint))

    def link(self) -> None:
        """Tie every name to its definition; a file's own definitions win over its imports."""
        for module in self.modules:
            for item in module.definitions():
                module.symbols.setdefault(item.name, Definition(item, module))
        for module in self.modules:
            for node, imported in module.imports:
                for name in node.names:
                    found = _definition(imported, name.name)
                    if found is not None:
                        module.symbols.setdefault(name.alias.id, found)
                    else:
                        self._nameless(module, node, imported, name)

    def _nameless(
        self, module: Module, node: ast.Import, imported: Module, name: ast.ImportName
    ) -> None:
        known = [item.name for item in imported.definitions()]
        known += [n.alias.id for other, _ in imported.imports for n in other.names]
        message = f"`{written(node)}` has no pattern or extern `{name.name}`"
        hint = did_you_mean(name.name, known) if len(self.faults) < MAX_FILES else None
        if name.name in known:
            message = f"`{name.name}` is imported in a circle and defined nowhere"
            hint = "import it from the file that defines it"
        self._fault(module, name.span, message, hint)


def _definition(module: Module, name: str) -> Definition | None:
    """The definition behind a name, through any number of files that pass it on."""
    passed: set[tuple[Module, str]] = set()
    while (module, name) not in passed:
        passed.add((module, name))
        own = module.symbols.get(name)
        if own is not None and own.module is module:
            return own
        step = _passed_on(module, name)
        if step is None:
            return None
        module, name = step
    return None


def _passed_on(module: Module, alias: str) -> tuple[Module, str] | None:
    for node, imported in module.imports:
        for name in node.names:
            if name.alias.id == alias:
                return imported, name.name
    return None
