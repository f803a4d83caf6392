"""Reading machines: names, files, and where a mistake is told to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commlang.errors import UsageError
from commlang.source import Source
from commlang.topology import load_machine, machine_names, write_yaml
from commlang.topology.load import read_machine

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """\
name: box
links:
  - {name: wire, latency: 2us, bandwidth: 400Gb/s}
levels:
  - {name: node, kind: switch, size: 4, link: wire}
"""


def refused(text: str, path: str = "m.yaml") -> str:
    with pytest.raises(UsageError) as error:
        read_machine(Source(text, path))
    return str(error.value)


def test_a_machine_is_read_and_written_alike(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(GOOD, encoding="utf-8")
    machine = load_machine(path)
    assert machine == load_machine(str(path))
    assert machine.links[0].bandwidth == 50e9
    assert machine.links[0].latency == 2e-6
    for read in (machine, *map(load_machine, machine_names())):
        assert read_machine(Source(write_yaml(read))) == read


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kind: switch", "kind: swich", "m.yaml:5:24: levels.0.kind: Input should be 'switch'"),
        ("latency: 2us", "latency: 2 parsec", "m.yaml:3:27: links.0.latency: `2 parsec` is no such "
         "quantity; write `2us` or a number"),
        ("latency: 2us", "latency: .nan", "m.yaml:3:27: links.0.latency: `nan` must be finite and"),
        ("size: 4", "sise: 4", "m.yaml:5:5: levels.0.size: missing; give it"),
        ("size: 4", "size: 4, prots: 2", "m.yaml:5:48: levels.0.prots: no such key; did you mean "
         "`ports`?"),
        ("name: box", "nam: box", "m.yaml:1:1: name: missing; give it"),
        ("name: box", "name: box\nxyz: 1", "m.yaml:2:6: xyz: no such key; there are name, about, "),
        ("size: 4", "size: 4, size: 5", "m.yaml:5:41: `size` is given twice"),
        ("size: 4", "size: yes", "m.yaml:5:38: levels.0.size.0: Input should be a valid integer"),
        ("link: wire", "link: wires", "m.yaml:1:1: level `node`: no link `wires` among wire"),
        ("link: wire", "link: *wire", "m.yaml:5:47: aliases are not read; write the value again"),
        ("name: box", "name: !!python/name:os.system box", "could not determine a constructor for"),
        ("name: box", "name: [box", "expected ',' or ']', but got ':'; not YAML"),
        ("name: box", "name: " + "[" * 60 + "]" * 60, "nested more than 50 deep; not a machine"),
        ("name: box", "name: " + "9" * 5000, "m.yaml: Exceeds the limit"),
        ("name: box", "name: \x01", "m.yaml: unacceptable character #x0001"),
        ("name: box", "name: 2020-02-31", "m.yaml: day is out of range for month"),
        ("name: box", "name: box\ncompute: {flops: {bfloat61: 1}}", "m.yaml:2:29: compute.flops."
         "bfloat61: `bfloat61` is no dtype; did you mean `bfloat16`?"),
        ("name: box", "name: box\ncollectives:\n"
         + "- {name: barrier, world: 2, points: [[1, 1]]}\n" * 2,
         "the times of barrier on 2 ranks are given twice"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place(old: str, new: str, said: str) -> None:
    assert old in GOOD
    assert said in refused(GOOD.replace(old, new, 1))


@pytest.mark.parametrize("text", ["", "# nothing\n", "3", "[1, 2]", "a"])
def test_what_is_no_mapping_is_no_machine(text: str) -> None:
    assert refused(text) == "m.yaml is no machine: it must have `name`, `links` and `levels`"


def test_several_documents_are_refused() -> None:
    assert "expected a single document in the stream, but found" in refused(f"{GOOD}---\n{GOOD}")


def test_names_and_files_that_there_are_not_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^there is no machine `dgx-h10`; did you mean"):
        load_machine("dgx-h10")
    with pytest.raises(UsageError, match=r"there are dgx-h100, .*, tpu-v5p, or give a "):
        load_machine("x")
    with pytest.raises(UsageError, match=r"^an empty name names no machine"):
        load_machine("")
    with pytest.raises(UsageError, match=r"^cannot read a\.yaml: No such file or directory$"):
        load_machine("a.yaml")
    with pytest.raises(UsageError, match=r"^cannot read .*: Is a directory$"):
        load_machine(tmp_path)
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"byte 0xff is not UTF-8"):
        load_machine(tmp_path / "b.yaml")


NCCL = """\
<system version="1"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">
<pci busid="0" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="0" rank="0" sm="80">
<nvlink target="1" count="4" tclass="0x030200"/></gpu></pci>
<pci busid="1" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="1" rank="1" sm="80"/></pci>
<nic><net speed="100000" latency="1"/></nic></cpu></system>
"""
ASTRA = "topology: [Ring, Switch]\nnpus_count: [2, 8]\nbandwidth: [200, 50]\nlatency: [5, 9.5]\n"
PIECES = [
    *("[", "{", "}", "- ", "&a ", "*a", "!!int ", "9" * 30, "-1", "1e400", ".nan", "null", "~", ""),
    *("true", "\n", '"', "<a>", "&amp;", "1:30", "2020-01-01", "<<: ", "\x00", "\t", "é"),
]


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from([GOOD, ASTRA, NCCL]),
    st.lists(
        st.tuples(st.integers(0, 500), st.integers(0, 12), st.sampled_from(PIECES)), max_size=4
    ),
)
def test_any_text_is_a_machine_or_refused(text: str, edits: list[tuple[int, int, str]]) -> None:
    for start, length, piece in edits:
        text = text[:start] + piece + text[start + length :]
    try:
        machine = read_machine(Source(text, "f"))
    except UsageError as error:
        said = str(error)
    else:
        said = f"f is of {machine.for_world(1).size} devices"
    assert said.startswith("f")
