"""From marked YAML to a pydantic model, or one message about the first mistake, with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from commlang.diagnostics import nearest
from commlang.errors import UsageError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from commlang.topology.marked import Marked

Model = TypeVar("Model", bound=BaseModel)
_SHOWN = 300


def validated(marked: Marked, model: type[Model]) -> Model:
    """The model of what a text says; raises UsageError with `path:line:column` and the keys."""
    try:
        return model.model_validate(marked.data)
    except ValidationError as error:
        # Later errors often follow from the first: a list with a wrong entry also counts as empty.
        first = error.errors()[0]
        raise UsageError(f"{marked.where(first['loc'])}: {_said(first, model)[:_SHOWN]}") from None


def _said(error: ErrorDetails, model: type[BaseModel]) -> str:
    """What pydantic found, by key path; of an unknown key also those that there are."""
    keys = ".".join(str(key) for key in error["loc"] if key != "[key]")
    if error["type"] == "extra_forbidden":
        known = _fields(model, error["loc"][:-1])
        near = nearest(str(error["loc"][-1]), known)
        hint = f"did you mean `{near}`?" if near else f"there are {', '.join(known)}"
        return f"{keys}: no such key; {hint}"
    if error["type"] == "missing":
        return f"{keys}: missing; give it"
    text = error["msg"].removeprefix("Value error, ")
    return f"{keys}: {text}" if keys else text


def _fields(model: type[BaseModel], keys: tuple[int | str, ...]) -> list[str]:
    """The fields of the model that a path of keys leads to, through tuples of models."""
    for key in keys:
        if isinstance(key, str) and key in model.model_fields:
            model = _inner(model.model_fields[key].annotation) or model
    return list(model.model_fields)


def _inner(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _inner(part))), None)
