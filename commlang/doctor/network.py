"""DR2: names, network cards and InfiniBand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from commlang.doctor import sources
from commlang.doctor.advice import Rule, Said, Severity

if TYPE_CHECKING:
    from commlang.doctor.probe import Probe

SLOW_S = 0.5
"""A look-up that takes so long is answered by nobody near: a hosts file answers in 1 ms."""
FAST = 25.0
"""Gb/s; below it a gradient of 1 GB takes longer to send than most steps to compute."""


def own_name_is_unknown(probe: Probe) -> Said | None:
    own = probe.own_name
    if own is None or own.address is not None:
        return None
    fact = f"this host's name {own.name} has no address: {own.error}"
    why = "gloo binds to it; without, it takes the loopback device, which other nodes cannot reach"
    todo = f"add {own.name} to /etc/hosts, or set GLOO_SOCKET_IFNAME"
    return Said(fact, why, todo)


def own_name_is_slow(probe: Probe) -> Said | None:
    own = probe.own_name
    if own is None or own.address is None or own.seconds < SLOW_S:
        return None
    fact = f"to look up this host's name {own.name} takes {own.seconds:.1f} s"
    why = "every rank does so when groups are made, and a store for each that connects"
    return Said(fact, why, f"add {own.name} to /etc/hosts, or set GLOO_SOCKET_IFNAME")


def own_name_is_loopback(probe: Probe) -> Said | None:
    own = probe.own_name
    bound = "GLOO_SOCKET_IFNAME" in probe.variables
    if own is None or bound or not (own.address or "").startswith("127.") or not probe.network:
        return None
    fact = f"this host's name {own.name} is {own.address}, which is the host itself only"
    why = "gloo binds to it, so that ranks of other nodes cannot connect"
    todo = "for several nodes set GLOO_SOCKET_IFNAME, or change the line in /etc/hosts"
    return Said(fact, why, todo)


def master_is_unknown(probe: Probe) -> Said | None:
    master = probe.master
    if master is None or master.address is not None:
        return None
    fact = f"MASTER_ADDR={master.name} has no address: {master.error}"
    todo = "set it to a name or an address of rank 0's host that all hosts know"
    return Said(fact, "no rank can meet the others there", todo)


def master_is_slow(probe: Probe) -> Said | None:
    master = probe.master
    if master is None or master.address is None or master.seconds < SLOW_S:
        return None
    fact = f"to look up MASTER_ADDR={master.name} takes {master.seconds:.1f} s"
    return Said(fact, "every rank does so to join", f"write its address, {master.address}")


def port_that_is_down(probe: Probe) -> Said | None:
    down = [port for port in probe.infiniband if not re.search(r"\bACTIVE\b", port)]
    if not down:
        return None
    fact = f"not active: {', '.join(down)}"
    why = "NCCL goes over the ports that are left, or over TCP"
    return Said(fact, why, "see `ibstat`; leave out a port for good with NCCL_IB_HCA=^NAME")


def slow_network(probe: Probe) -> Said | None:
    speeds = [float(m[1]) for card in probe.network if (m := re.search(r" ([\d.]+) Gb/s", card))]
    if probe.infiniband or not probe.devices or not speeds or max(speeds) >= FAST:
        return None
    fact = f"there are GPUs, no InfiniBand, and the fastest card makes {max(speeds):g} Gb/s"
    why = "across nodes the network would decide how fast a step is"
    todo = "stay on one node, or send less: accumulate gradients, or reduce hierarchically"
    return Said(fact, why, todo)


RULES = (
    Rule("DR201", Severity.WARNING, sources.INTERFACES, own_name_is_unknown),
    Rule("DR202", Severity.WARNING, sources.INTERFACES, own_name_is_slow),
    Rule("DR203", Severity.BROKEN, sources.INITIALISATION, master_is_unknown),
    Rule("DR204", Severity.WARNING, sources.INITIALISATION, master_is_slow),
    Rule("DR205", Severity.WARNING, sources.NCCL_ENV, port_that_is_down),
    Rule("DR206", Severity.ADVICE, sources.BACKENDS, slow_network),
    Rule("DR207", Severity.ADVICE, sources.INTERFACES, own_name_is_loopback),
)
