"""Machines: what devices there are, how they are joined, and how fast each link is."""

from __future__ import annotations

from commlang.topology.load import load_machine, machine_names, write_yaml
from commlang.topology.model import Machine
from commlang.topology.parts import Collective, Compute, Level, Link
from commlang.topology.resources import Resource
from commlang.topology.routes import Routes

__all__ = [
    "Collective",
    "Compute",
    "Level",
    "Link",
    "Machine",
    "Resource",
    "Routes",
    "load_machine",
    "machine_names",
    "write_yaml",
]
