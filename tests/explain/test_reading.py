"""Reading dumps: plain data only, nothing run, and a clear error for all that is no dump."""

from __future__ import annotations

import os
import pickle
import pickletools
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlang.explain.decode import Malformed, decode
from commlang.explain.pickled import NotPlain, read_plain
from commlang.explain.read import rank_of
from tests.explain.nccl import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(), inner) | st.lists(inner, max_size=4).map(tuple)
    ),
    max_leaves=30,
)
DUMP = pickle.dumps(Recorder(0, 2).call("all_reduce").data(), protocol=2)


@given(PLAIN, st.integers(2, 5))
def test_plain_data_are_read_as_pickle_reads_them(value: Any, protocol: int) -> None:
    assert read_plain(pickle.dumps(value, protocol)) == value


@given(st.binary(max_size=60))
def test_junk_is_refused_or_plain(data: bytes) -> None:
    with suppress(NotPlain):
        read_plain(b"\x80\x02" + data)


@given(st.integers(0, len(DUMP) - 1), st.binary(min_size=1, max_size=4))
def test_a_damaged_dump_is_an_error_or_a_dump(at: int, patch: bytes) -> None:
    data = DUMP[:at] + patch + DUMP[at + len(patch) :]
    with suppress(NotPlain, Malformed):
        assert decode(read_plain(data), 0, "trace_0").rank == 0


def test_real_dumps_hold_what_pickle_finds_in_them(dumps: Callable[..., Path]) -> None:
    for path in dumps("missing").iterdir():
        data = path.read_bytes()
        assert read_plain(data) == pickle.loads(data)


class Attack:
    """Unpickled by `pickle`, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", range(6))
def test_nothing_in_a_dump_is_run(protocol: int, cli: Callable[..., Any], folder: Path) -> None:
    made = folder / "made"
    attack = {"version": "2.10", "entries": [Attack(made)]}
    (folder / "trace_0").write_bytes(pickle.dumps(attack, protocol))
    result = cli("explain", "trace_0")
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("error: trace_0 is no Flight Recorder dump: byte ")
    if protocol >= 2:
        assert "asks for a Python object or a call, which no dump does" in result.err
    assert not made.exists()
    pickle.loads((folder / "trace_0").read_bytes())
    assert made.exists()  # so it was an attack


def test_every_opcode_is_either_plain_or_refused() -> None:
    """Of pickle's opcodes, none that builds an object, and none unknown."""
    for opcode in pickletools.opcodes:
        data = b"\x80\x04(" + opcode.code.encode("latin-1") + b"\x00" * 16
        with suppress(NotPlain):
            assert type(read_plain(data)) in (type(None), bool, int, str, float, list, dict, tuple)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is empty"),
        (b"\x00\x01\x02", "byte 0 is not what a dump has there"),
        (DUMP[:-40], "it ends too early, or is damaged"),
        (b"\x80\x02(.", "it is damaged: it ends in the middle of something"),
        (b"\x80\x02}K\x01K\x02s.", "a dict in it has a key that is no text"),
        (b"\x80\x02h\x07.", "it is damaged: it refers to something that it does not hold"),
        (b"\x80\x02X\x02\x00\x00\x00\xff\xfe.", "it is damaged: a text in it is not UTF-8"),
        (b"{]", "it begins like JSON, but is none: Expecting property name"),
        (b'{"a":' * 100_000, "it begins like JSON, but is none: maximum recursion depth"),
    ],
)
def test_what_is_no_dump(data: bytes, why: str, cli: Callable[..., Any], folder: Path) -> None:
    (folder / "trace_0").write_bytes(data)
    result = cli("explain", "trace_0")
    assert result.code == 2
    assert result.err.startswith(f"error: trace_0 is no Flight Recorder dump: {why}")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"entries": {}}, "entries is no list"),
        ({"entries": [1]}, "an entry is no dict"),
        ({"entries": [{}]}, "record_id is no whole number"),
        ({"pg_config": {"0": {"ranks": "[0, "}}}, "the ranks of a group are no list"),
        ({"pg_config": {"0": {"ranks": '["a"]'}}}, "a group's rank is no whole number"),
    ],
)
def test_other_data(
    change: dict[str, Any], why: str, cli: Callable[..., Any], folder: Path
) -> None:
    data = {**Recorder(0, 2).call("barrier").data(), **change}
    (folder / "trace_0").write_bytes(pickle.dumps(data))
    result = cli("explain", "trace_0")
    assert result.code == 2
    assert result.err == (f"error: trace_0 is no Flight Recorder dump as torch writes it: {why}\n")


def test_an_entry_of_no_operation(cli: Callable[..., Any], folder: Path) -> None:
    """Text of a dump is printed without what a terminal would obey."""
    data = Recorder(0, 2).call("barrier").data()
    data["entries"][0]["profiling_name"] = "\x1b[2Jevil"
    (folder / "trace_0").write_bytes(pickle.dumps(data))
    result = cli("explain", "trace_0")
    assert result.err.endswith("as torch writes it: `�[2Jevil` is no operation\n")


def test_mistakes_in_the_command(cli: Callable[..., Any], folder: Path) -> None:
    def told(*paths: str) -> str:
        result = cli("explain", *paths)
        assert (result.code, result.out) == (2, "")
        return result.err

    (folder / "empty").mkdir()
    (folder / "step.cl").write_text("pattern step(x: float32[4]):\n    all_reduce(x)\n")
    (folder / "trace_0").write_bytes(pickle.dumps(Recorder(0, 2).data()))
    assert "there is no dump in empty; torch ends their names in the rank" in told("empty")
    assert "cannot read no_0: No such file or directory" in told("no_0")
    assert "trace: which rank's dump is it?" in told("./trace")
    assert "give the dumps too" in told("step.cl")
    assert "give one pattern, the one that ran" in told("trace_0", "step.cl", "other.cl")
    assert "--set and --preset are for a pattern" in told("trace_0", "--set", "n=1")
    assert "the dumps have no operation; is TORCH_FR_BUFFER_SIZE 0" in told("trace_0")


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("nccl_trace_rank_12", 12),
        ("dir.3/trace7.json", 7),
        ("a_0.pickle", 0),
        ("notes.txt", None),
        ("trace", None),
    ],
)
def test_the_rank_is_in_the_name(name: str, rank: int | None) -> None:
    assert rank_of(name) == rank
