"""YAML with the place of every value, so that a message can say where a mistake is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from commlang.errors import UsageError
from commlang.records import entity

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node

MAX_DEPTH = 50
Place = tuple[int, int]


@entity
class Marked:
    """Plain data of a YAML text, and the line and column of what a path of keys leads to."""

    path: str
    data: Any
    places: dict[tuple[str | int, ...], Place]

    @property
    def keys(self) -> set[str]:
        """The keys at the top; none if there is no mapping."""
        return {str(path[0]) for path in self.places if len(path) == 1 and isinstance(path[0], str)}

    def of(self, data: object) -> Marked:
        """Other data made of this text; mistakes in it are told at its start."""
        start = {(): self.places[()]} if () in self.places else {}
        return Marked(self.path, data, start)

    def where(self, keys: tuple[str | int, ...]) -> str:
        """`path:line:column` of the innermost value on the way of the keys that is there."""
        for length in range(len(keys), -1, -1):
            if keys[:length] in self.places:
                line, column = self.places[keys[:length]]
                return f"{self.path}:{line}:{column}"
        return self.path


def read_yaml(text: str, path: str) -> Marked:
    """Read one YAML document; raises UsageError for what is none, and for aliases.

    Only plain values are made, and a text cannot grow: there is nothing to refer to.
    """
    import yaml

    try:
        _refuse_aliases(yaml, text, path)
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        places: dict[tuple[str | int, ...], Place] = {}
        if node is not None:
            _mark(node, (), places, path)
        data: Any = None if node is None else cast("Any", loader).construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else path
        said = ", ".join(part for part in (error.context, error.problem) if part)
        raise UsageError(f"{where}: {said}; not YAML") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: {str(error).splitlines()[0]}; not YAML") from None
    except RecursionError:
        raise UsageError(f"{path}: nested too deeply for a machine") from None
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
    return Marked(path, data, places)


def _refuse_aliases(yaml: Any, text: str, path: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        where = f"{path}:{event.start_mark.line + 1}:{event.start_mark.column + 1}"
        if isinstance(event, yaml.AliasEvent):
            raise UsageError(f"{where}: aliases are not read; write the value again")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise UsageError(f"{where}: nested more than {MAX_DEPTH} deep; not a machine")


def _mark(
    node: Node, keys: tuple[str | int, ...], places: dict[tuple[str | int, ...], Place], path: str
) -> None:
    from yaml.nodes import MappingNode, SequenceNode

    places[keys] = (node.start_mark.line + 1, node.start_mark.column + 1)
    if isinstance(node, SequenceNode):
        for number, value in enumerate(node.value):
            _mark(value, (*keys, number), places, path)
    elif isinstance(node, MappingNode):
        _refuse_twice(node, path)
        for key, value in node.value:
            _mark(value, (*keys, str(key.value)), places, path)


def _refuse_twice(node: MappingNode, path: str) -> None:
    """YAML takes the last of two equal keys without a word."""
    seen: set[str] = set()
    for key, _ in node.value:
        name = str(key.value)
        if name in seen:
            line, column = key.start_mark.line + 1, key.start_mark.column + 1
            raise UsageError(f"{path}:{line}:{column}: `{name}` is given twice")
        seen.add(name)
