"""Pickles of plain data, read without running anything that they ask for.

`pickle` builds any object that a file names, and even without one some of its opcodes take as
much memory as a file pleases. This reads the opcodes that torch's own writer uses for None, bools,
numbers, text, lists, tuples and dicts, and their kin of later protocols; any other is refused.
"""

from __future__ import annotations

import pickle
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 5_000_000
"""Opcodes that a file may have; torch writes some 40 for each operation that it recorded."""


class NotPlain(ValueError):
    """The data are no pickle of plain data; the text says why, for a sentence with the file."""


def read_plain(data: bytes) -> Any:
    """What a pickle holds, if that is plain data; raises NotPlain.

    Keys of dicts must be text, as a hash of tuples in tuples takes stack. Time and memory grow with
    the length of the data, by at most some hundred bytes for each.
    """
    try:
        return _Machine(data).run()
    except (IndexError, struct.error):
        raise NotPlain("it ends too early, or is damaged") from None
    except UnicodeDecodeError:
        raise NotPlain("it is damaged: a text in it is not UTF-8") from None


class _Machine:
    """pickle's stack machine, for a few of its opcodes.

    A wrong order of opcodes shows as an IndexError of a stack that is empty.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:
        steps, data = self._STEPS, self._data
        for _ in range(MOST):
            code = data[self._at]
            self._at += 1
            if code == pickle.STOP[0]:
                return self._result()
            step = steps.get(code)
            if step is None:
                raise NotPlain(_refusal(code, self._at - 1))
            step(self)
        raise NotPlain(f"it is longer than {MOST:,} steps")

    def _result(self) -> Any:
        if self._marks or len(self._stack) != 1:
            raise NotPlain("it is damaged: it ends in the middle of something")
        return self._stack[0]

    def _take(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) != count:
            raise IndexError
        self._at += count
        return found

    def _number(self, layout: str) -> Any:
        return struct.unpack(layout, self._take(struct.calcsize(layout)))[0]

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _mark(self) -> None:
        self._marks.append(self._stack)
        self._stack = []

    def _since_mark(self) -> list[Any]:
        found, self._stack = self._stack, self._marks.pop()
        return found

    def _text(self, layout: str) -> None:
        self._push(str(self._take(self._number(layout)), "utf-8", "surrogatepass"))

    def _long(self) -> None:
        self._push(int.from_bytes(self._take(self._number("<B")), "little", signed=True))

    def _last(self, count: int) -> list[Any]:
        if len(self._stack) < count:
            raise IndexError
        found = self._stack[-count:]
        del self._stack[-count:]
        return found

    def _append(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not list:
            raise NotPlain("it is damaged: it appends to what is no list")
        target.extend(items)  # pyright: ignore[reportUnknownMemberType]

    def _set(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not dict or len(items) % 2:
            raise NotPlain("it is damaged: it sets items of what is no dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if type(key) is not str:
                raise NotPlain("a dict in it has a key that is no text")
            target[key] = value

    def _put(self, index: int) -> None:
        self._memo[index] = self._stack[-1]

    def _get(self, index: int) -> None:
        if index not in self._memo:
            raise NotPlain("it is damaged: it refers to something that it does not hold")
        self._push(self._memo[index])

    _STEPS: dict[int, Callable[[_Machine], None]] = {  # noqa: RUF012 (a constant)
        pickle.PROTO[0]: lambda m: m._number("<B"),
        pickle.FRAME[0]: lambda m: m._number("<Q"),
        pickle.NONE[0]: lambda m: m._push(None),
        pickle.NEWTRUE[0]: lambda m: m._push(True),
        pickle.NEWFALSE[0]: lambda m: m._push(False),
        pickle.BININT[0]: lambda m: m._push(m._number("<i")),
        pickle.BININT1[0]: lambda m: m._push(m._number("<B")),
        pickle.BININT2[0]: lambda m: m._push(m._number("<H")),
        pickle.LONG1[0]: _long,
        pickle.BINFLOAT[0]: lambda m: m._push(m._number(">d")),
        pickle.BINUNICODE[0]: lambda m: m._text("<I"),
        pickle.SHORT_BINUNICODE[0]: lambda m: m._text("<B"),
        pickle.EMPTY_LIST[0]: lambda m: m._push([]),
        pickle.EMPTY_DICT[0]: lambda m: m._push({}),
        pickle.EMPTY_TUPLE[0]: lambda m: m._push(()),
        pickle.MARK[0]: _mark,
        pickle.TUPLE[0]: lambda m: m._push(tuple(m._since_mark())),
        pickle.TUPLE1[0]: lambda m: m._push(tuple(m._last(1))),
        pickle.TUPLE2[0]: lambda m: m._push(tuple(m._last(2))),
        pickle.TUPLE3[0]: lambda m: m._push(tuple(m._last(3))),
        pickle.APPEND[0]: lambda m: m._append([m._stack.pop()]),
        pickle.APPENDS[0]: lambda m: m._append(m._since_mark()),
        pickle.SETITEM[0]: lambda m: m._set(m._last(2)),
        pickle.SETITEMS[0]: lambda m: m._set(m._since_mark()),
        pickle.BINPUT[0]: lambda m: m._put(m._number("<B")),
        pickle.LONG_BINPUT[0]: lambda m: m._put(m._number("<I")),
        pickle.MEMOIZE[0]: lambda m: m._put(len(m._memo)),
        pickle.BINGET[0]: lambda m: m._get(m._number("<B")),
        pickle.LONG_BINGET[0]: lambda m: m._get(m._number("<I")),
    }


_OBJECTS = frozenset(
    code[0]
    for code in (
        *(pickle.GLOBAL, pickle.STACK_GLOBAL, pickle.REDUCE, pickle.BUILD, pickle.INST),
        *(pickle.OBJ, pickle.NEWOBJ, pickle.NEWOBJ_EX, pickle.PERSID, pickle.BINPERSID),
        *(pickle.EXT1, pickle.EXT2, pickle.EXT4),
    )
)


def _refusal(code: int, at: int) -> str:
    if code in _OBJECTS:
        return (
            f"byte {at} asks for a Python object or a call, which no dump does and which may run "
            "anything; nothing of it was run"
        )
    return f"byte {at} is not what a dump has there"
