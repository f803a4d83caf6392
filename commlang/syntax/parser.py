"""Text to syntax tree, with located errors for text that is none."""

from __future__ import annotations

import gc
import hashlib
import pickle
from functools import cache
from typing import Any, NoReturn, cast

import lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

from commlang import resources
from commlang.diagnostics import Diagnostic, Label, did_you_mean
from commlang.errors import PatternError
from commlang.source import Source, Span
from commlang.syntax import ast
from commlang.syntax.blocks import BlockError, Blocks
from commlang.syntax.build import Builder, LiteralError
from commlang.syntax.explain import explain
from commlang.syntax.scan import MAX_DEPTH, scan
from commlang.syntax.walk import depth_exceeds, walk

KEYWORDS = frozenset(
    {
        *("and", "as", "async", "elif", "else", "extern", "false", "for", "from", "if", "import"),
        *("in", "not", "or", "parallel", "pass", "pattern", "sequence", "true"),
    }
)
RESERVED = KEYWORDS | {"rank", "ranks", "world", "old"}


_OPTIONS: dict[str, Any] = {
    "parser": "lalr",
    "keep_all_tokens": True,
    "maybe_placeholders": False,
}


def build_table() -> bytes:
    """The LALR table of the grammar, serialised: building one costs ten times loading it."""
    text = resources.grammar_path().read_text("utf-8")
    parser = cast("Any", lark.Lark(text, postlex=Blocks(), **_OPTIONS))
    data, memo = parser.memo_serialize([TerminalDef, Rule])
    key = (lark.__version__, hashlib.sha256(text.encode()).hexdigest())
    return pickle.dumps({"key": key, "data": data, "memo": memo}, protocol=4)


@cache
def _parser() -> lark.Lark:
    grammar = resources.grammar_path()
    text = grammar.read_text("utf-8")
    key = (lark.__version__, hashlib.sha256(text.encode()).hexdigest())
    live: dict[str, Any] = {"postlex": Blocks(), "transformer": Builder()}
    try:
        table = pickle.loads(resources.parser_table_path().read_bytes())
        if table["key"] == key:
            loader = cast("Any", lark.Lark)
            return loader._load_from_dict(table["data"], table["memo"], **live)
    except (OSError, pickle.UnpicklingError, KeyError, EOFError):
        pass  # no usable table: build the parser from the grammar
    return lark.Lark(text, **_OPTIONS, **live)


def parse(source: Source) -> ast.Module:
    """Parse a source; raises PatternError with one located diagnostic if it is no pattern file."""
    found = scan(source)
    if found.fault is not None and found.fault.code == "CL002":
        raise PatternError([found.fault])
    collecting = gc.isenabled()
    gc.disable()  # the nodes are all live: a collection in the middle of parsing finds nothing
    try:
        items = cast("Any", _parser()).parse(source.text + "\n")
    except LiteralError as error:
        _fail(source, "CL001", str(error), error.span)
    except (lark.exceptions.UnexpectedInput, BlockError) as error:
        raise PatternError([explain(source, error, found)]) from None
    finally:
        if collecting:
            gc.enable()
    module = ast.Module(Span(0, len(source.text)), items, found.comments)
    _check_names(source, module)
    return module


def parse_expression(text: str, where: str) -> tuple[Source, ast.Expr]:
    """Parse one expression (a command-line value); raises PatternError naming `where`."""
    head = "pattern value():\n    let value = "
    source = Source(text.strip(), where)
    try:
        module = parse(Source(head + source.text, where))
    except PatternError as error:
        first = error.diagnostics[0]
        _fail(source, first.code, f"`{text}` is not a value: {first.message}", Span(0, len(text)))
    pattern = module.items[0]
    if not isinstance(pattern, ast.Pattern) or len(module.items) > 1 or len(pattern.body) > 1:
        _fail(source, "CL001", f"`{text}` is not a value", Span(0, len(text)))
    statement = cast("ast.Let", next(iter(pattern.body)))
    return Source(head + source.text, where), statement.value


def _check_names(source: Source, module: ast.Module) -> None:
    deep = depth_exceeds(module, MAX_DEPTH)
    if deep is not None:
        _fail(source, "CL002", f"code is nested more than {MAX_DEPTH} deep", deep.span)
    for node in walk(module):
        match node:
            case ast.Target(span, name) if name in RESERVED:
                message = f"`{name}` is a reserved word and cannot be a name"
                _fail(source, "CL105", message, span, "choose another name")
            case ast.Name(span, name) if name in KEYWORDS - {"true", "false"}:
                _fail(source, "CL001", f"`{name}` is a keyword and cannot stand here", span)
            case ast.Name(span, ("True" | "False" | "None") as name):
                hint = did_you_mean(name.lower(), ["true", "false"]) or "there is no None value"
                _fail(source, "CL101", f"`{name}` is not defined", span, hint)
            case _:
                pass


def _fail(source: Source, code: str, message: str, span: Span, hint: str | None = None) -> NoReturn:
    raise PatternError([Diagnostic(code, message, (Label(source, span),), help=hint)])
