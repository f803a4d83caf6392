"""Who sends how many bytes to whom: messages, and collectives by the algorithm that runs them."""

from __future__ import annotations

from commlang.traffic.algorithms import ALGORITHMS, SOURCES, USUAL, usual
from commlang.traffic.count import traffic
from commlang.traffic.links import LinkTraffic, by_link, by_resource
from commlang.traffic.table import Traffic

__all__ = [
    "ALGORITHMS",
    "SOURCES",
    "USUAL",
    "LinkTraffic",
    "Traffic",
    "by_link",
    "by_resource",
    "traffic",
    "usual",
]
