"""How to run a plan: plain data, so that the launcher need not import torch for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """How to run a plan: `--backend`, `--device`, `--timeout` (seconds without progress) and so on."""

    backend: str = "auto"
    device: str = "auto"
    timeout: float = 60.0
    iterations: int = 5
    warmup: int = 1
    seed: int = 0
    externs: tuple[tuple[str, str], ...] = ()
