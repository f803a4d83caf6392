"""`commlang topology`: machines as text, JSON and YAML, and files that are none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import yaml

from commlang.topology import load_machine, machine_names

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Result

    Cli = Callable[..., Result]

SMALL = """\
name: small
about: Two of a kind
links:
  - {name: wire, latency: 1.5us, bandwidth: 8Gb/s, gap: 20ns, source: measured}
levels:
  - {name: node, kind: switch, size: 4, link: wire, carries: true}
  - {name: all, kind: fat_tree, size: 100, link: wire, leaf: 10, oversubscription: 2, hop: 1us}
compute: {flops: {float32: 2e12}, memory: 16GB, efficiency: 0.5}
collectives:
  - {name: all_reduce, world: 4, points: [[1, 1us], [1MB, 1ms]]}
  - {name: broadcast, world: 4, alpha: 3us, beta: 2e-9}
"""
TEXT = """\
small: up to 400 devices
Two of a kind

levels, the innermost first
  name  kind      joins          link
  node  switch    4 devices      wire  carries what goes farther
  all   fat_tree  100 of `node`  wire  leaf switches of 10, oversubscription 2, a hop 1 µs

links, in one direction
  name  bandwidth  latency  overhead  gap
  wire  1 GB/s     1.5 µs   0 s       20 ns

each device
  float32     2 Tflop/s
  memory      16 GB
  efficiency  0.5

collectives
  name        ranks  measured
  all_reduce  4      2 sizes
  broadcast   4      3 µs + 2e-09 s per byte

sources
  link wire
    measured
"""


def test_the_shipped_machines_are_listed(cli: Cli) -> None:
    result = cli("topology")
    assert (result.code, result.err) == (0, "")
    first = [line.split()[:2] for line in result.out.splitlines() if not line.startswith(" ")]
    sizes = [[name, f"{load_machine(name).size:,}"] for name in machine_names()]
    assert first == [["machine", "devices"], *sizes]
    listed = json.loads(cli("topology", "--format", "json").out)
    assert (listed[0]["name"], listed[0]["devices"]) == ("dgx-h100", 8)


def test_a_machine_is_shown(cli: Cli, folder: Path) -> None:
    (folder / "small.yaml").write_text(SMALL, encoding="utf-8")
    result = cli("topology", "small.yaml")
    assert (result.code, result.out, result.err) == (0, TEXT, "")
    shown = json.loads(cli("topology", "small.yaml", "--format", "json").out)
    assert shown["links"][0]["bandwidth"] == 1e9
    assert shown["devices"] == 400


def test_the_yaml_of_a_machine_is_its_own_to_change(cli: Cli, folder: Path) -> None:
    own = cli("topology", "tpu-v5p", "--format", "yaml").out
    assert own.startswith("name: tpu-v5p\n")
    assert "bandwidth: 100GB/s" in own
    (folder / "my.yaml").write_text(own.replace("[16, 16, 24]", "[4, 4]"), encoding="utf-8")
    assert cli("topology", "my.yaml").out.startswith("tpu-v5p: up to 16 devices\n")
    part = yaml.safe_load(cli("topology", "tpu-v5p", "--world", "60", "--format", "yaml").out)
    assert part["levels"][0]["size"] == [4, 4, 4]


def test_a_network_of_astra_sim_becomes_yaml(cli: Cli, folder: Path) -> None:
    text = "topology: [Ring]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n"
    (folder / "ring.yml").write_text(text, encoding="utf-8")
    made = cli("topology", "ring.yml", "--format", "yaml").out
    (folder / "made.yaml").write_text(made, encoding="utf-8")
    assert load_machine(folder / "made.yaml") == load_machine(folder / "ring.yml")


def test_what_cannot_be_shown_is_told(cli: Cli, folder: Path) -> None:
    (folder / "bad.yaml").write_text(SMALL.replace("size: 4,", "size: four,"), encoding="utf-8")
    (folder / "junk.yaml").write_bytes(bytes(range(256)))
    for argv, said in (
        (["dgx"], "error: there is no machine `dgx`; "),
        (["none.yaml"], "error: cannot read none.yaml: No such file or directory"),
        (["bad.yaml"], "error: bad.yaml:6:38: levels.0.size.0: Input should be a valid integer"),
        (["junk.yaml"], "error: junk.yaml:"),
        (["dgx-h100", "--world", "9"], "error: dgx-h100 has 8 devices, fewer than 9 ranks; "),
        (["--format", "yaml"], "error: name a machine; `commlang topology` alone lists them"),
        (["dgx-h100", "--world", "0"], "error: invalid value for '--world'"),
    ):
        result = cli("topology", *argv)
        assert (result.code, result.out) == (2, ""), argv
        assert result.err.startswith(said), result.err
