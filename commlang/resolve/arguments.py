"""Which argument of a call stands for which parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from commlang.resolve.context import Context
    from commlang.syntax import ast


def bind(
    node: ast.Call,
    what: str,
    names: Sequence[str],
    required: Collection[str],
    ctx: Context,
    keywords: Collection[str] = (),
) -> dict[str, ast.Expr]:
    """The arguments of a call by parameter, as in Python.

    `keywords` are further parameters that only a keyword can name. Reports every argument that
    has no parameter or a taken one, and the `required` parameters without an argument.
    """
    found = dict(zip(names, node.args, strict=False))
    if len(node.args) > len(names):
        many = len(names)
        message = f"{what} takes {many or 'no'} positional argument{'s' * (many != 1)}"
        ctx.report(
            "CL102", node.args[many].span, f"{message}, not {len(node.args)}", _takes(what, names)
        )
    for keyword in node.keywords:
        if keyword.name in found:
            message = f"{what} is given `{keyword.name}` twice"
            other = (found[keyword.name].span, "given here first")
            ctx.report("CL102", keyword.span, message, other=other)
        elif keyword.name in names or keyword.name in keywords:
            found[keyword.name] = keyword.value
        else:
            _unknown(keyword, what, [*names, *keywords], ctx)
    missing = [name for name in names if name in required and name not in found]
    if missing and not misnamed(node, [*names, *keywords]):
        listed = ", ".join(f"`{name}`" for name in missing)
        message = f"{what} needs {listed}"
        ctx.report("CL102", node.span, message, _takes(what, [*names, *keywords]))
    return found


def misnamed(node: ast.Call, known: Collection[str]) -> bool:
    """Whether a keyword names no parameter: then what is missing is what it was meant for."""
    return any(keyword.name not in known for keyword in node.keywords)


def _unknown(keyword: ast.Keyword, what: str, known: list[str], ctx: Context) -> None:
    if keyword.name == "async_op":
        hint = "write `handle = async …` and later `wait(handle)`"
    else:
        hint = ctx.suggest(keyword.name, known) or _takes(what, known)
    message = f"{what} has no argument `{keyword.name}`"
    ctx.report("CL102", keyword.span, message, hint)


def _takes(what: str, names: Sequence[str]) -> str:
    listed = ", ".join(names)
    return f"{what} takes ({listed})" if names else f"{what} takes no arguments"
