"""What this machine offers to torch.distributed, and what to do about what it lacks.

A probe (`commlang.execute.machine`) is plain data; each rule here is a function of it alone. So
advice is given only about what was looked at, and tests can play machines that are not there.
"""

from __future__ import annotations

from commlang.doctor.advice import Advice, Severity, advise
from commlang.doctor.general import GENERAL
from commlang.doctor.probe import Device, Lookup, Probe

__all__ = ["GENERAL", "Advice", "Device", "Lookup", "Probe", "Severity", "advise"]
