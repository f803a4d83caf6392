"""What to write instead of what the parser refused."""

from __future__ import annotations

import re

from commlang.diagnostics import did_you_mean

_WORDS = {
    "_NL": "end of line",
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": "a string",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "COLON": "`:`",
    "COMMA": "`,`",
    "EQUAL": "`=`",
    "AT": "`@`",
    "DOT": "`.`",
    "__ANON_0": "`->`",
    "$END": "end of file",
    **{
        word.upper(): f"`{word}`"
        for word in ("pattern", "extern", "from", "import", "as", "in", "for", "if", "else")
    },
}
_OPERATORS = {
    *("ADD", "MUL", "POW", "SHIFT", "BAND", "BOR", "BXOR", "AT", "DOT", "LPAR", "LSQB"),
    *("IF", "OR", "AND", "IN", "NOT", "FOR"),
    *("__ANON_1", "__ANON_2", "__ANON_3", "__ANON_4", "LESSTHAN", "MORETHAN"),
}
_VALUE = {"NAME", "NUMBER", "STRING", "LPAR", "LSQB", "ADD", "TILDE", "NOT"}

_STATEMENTS = (
    *("pattern", "extern", "from", "require", "ensure", "preset", "mesh", "group", "let", "temp"),
    *("for", "if", "elif", "else", "parallel", "sequence", "pass", "wait", "assume", "cost"),
)

_NO_STATEMENT = {
    "while": "there is no `while`; a loop is `for NAME in range(…):`",
    "def": "a file holds `pattern NAME(…):` and `extern NAME(…)`",
    "class": "a file holds `pattern NAME(…):` and `extern NAME(…)`",
    "import": "write `from FILE import NAME`",
    "return": "a pattern returns nothing; it writes to its tensor parameters",
    "elif": "`elif` follows the block of an `if` with the same indentation",
    "else": "`else` follows the block of an `if` with the same indentation",
    "async": "give the handle a name: `work = async …`",
}
_PLACES = {
    "assume": "`assume` stands in the body of an `extern`",
    "cost": "`cost` stands in the body of an `extern`",
    "pattern": "a `pattern` begins at the left margin, outside any block",
    "extern": "an `extern` begins at the left margin, outside any block",
    "from": "imports begin at the left margin, outside any block",
    **dict.fromkeys(
        ("require", "ensure", "preset", "mesh"),
        "contracts, presets and meshes stand directly in a pattern's body, not in a block",
    ),
}

_CHARACTERS = {
    **dict.fromkeys("'‘’“”", 'strings stand in double quotes: `"…"`'),
    "!": "write `not`, or `!=` to compare",
    "{": "there are no sets or dicts; a list is `[…]`",
    ";": "write one statement per line",
    "\\": "a line goes on inside brackets, without `\\`",
    "→": "write `->`",
    "≠": "write `!=`",
    "≤": "write `<=`",
    "≥": "write `>=`",
    "×": "write `*`",
    "\xa0": "this is a no-break space; write an ordinary one",
    "\t": "write spaces",
}


def expected_words(expected: set[str]) -> list[str]:
    """What could stand here instead, as few words as say it."""
    if expected >= {"PATTERN", "EXTERN"}:
        expected = expected - {"_NL", "$END"}
    if expected & {
        "MUL",
        "OR",
    }:
        # After a whole expression: say how it may end, not how it may go on.
        expected = expected - _OPERATORS
    words: list[str] = []
    if expected >= {"NUMBER", "LPAR"}:
        expected, words = expected - _VALUE, ["a value"]
    if not expected <= _WORDS.keys():
        return []  # part of the truth would mislead
    return sorted({_WORDS[name] for name in expected} | set(words))


def word_hint(word: str, expected: set[str], direct: bool) -> str | None:
    """Why a word that begins a line begins no statement here, None if nothing is known.

    `direct` tells that the parser stopped at the word or at what follows it.
    """
    if word in _NO_STATEMENT and "COLON" not in expected:
        return _NO_STATEMENT[word]
    if not direct or expected & {"ASYNC", "COLON"}:
        return None
    if "PATTERN" in expected:
        if word in _STATEMENTS:
            return "statements stand indented, in the body of a `pattern`"
        return did_you_mean(word, ["pattern", "extern", "from"])
    if expected & {"COST", "ASSUME"}:
        return "the body of an `extern` holds only `cost`, `assume` and `require`"
    if "__ANON_0" not in expected:
        return None
    return _PLACES[word] if word in _PLACES else did_you_mean(word, _STATEMENTS)


def char_hint(text: str, start: int, expected: set[str]) -> str | None:
    """What to write instead of an operator or character at an offset of the text."""
    char, pair = text[start : start + 1], text[max(0, start - 1) : start + 1]
    if pair in ("&&", "||"):
        return "write `and` and `or`"
    if char == "=" and pair[:1] and pair[0] in "+-*/%&|^":
        return "accumulate with an arrow: `value -> target, op=sum`"
    if char == "*" and expected == {"NAME"}:
        return "name what is to be imported"
    if char == "@" and expected & {"MUL", "OR", "__ANON_0"}:
        return "`@` does not chain; put one of them in brackets"
    if char == "=" and "MUL" in expected:
        return "compare with `==`"
    return _CHARACTERS.get(char)


def line_hint(before: str, expected: set[str], found: str = "") -> str | None:
    """What to write on a line that was understood up to `before`, where `found` stands now."""
    if found == "if" and re.match(r"\s*else\s*$", before):
        return "write `elif`"
    if found == "is":
        return "compare with `==`, or with `!=` for `is not`"
    if expected == {"ASYNC"}:
        return "bind a name with `let NAME = …`; copy data with `value -> target`"
    if found == ":" and re.match(r"\s*let\s+\w+\s*$", before):
        return "`let` binds a value; a tensor is declared `temp NAME: DTYPE[SHAPE]`"
    if re.match(r"\s*let\s+\w+\s*=\s*async\b", before):
        return "a handle is bound without `let`: `work = async …`"
    called = re.match(r"\s*(\w+)\s+$", before)
    if called and "__ANON_0" in expected and re.match(r"\w", found):
        return f"arguments stand in brackets: `{called[1]}(…)`"
    if re.match(r"\s*(for|if|elif|else|parallel|sequence|pattern)\b", before):
        return "end the line with `:`" if "COLON" in expected and not found else None
    if re.match(r"\s*from\b", before):
        return "write `from FILE import NAME`"
    return None
