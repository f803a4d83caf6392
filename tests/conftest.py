"""What every test shares: hypothesis profiles and the switch for long runs."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# Nothing here may depend on how busy the machine is: no deadline, and no check of generation speed.
_UNHURRIED = (HealthCheck.too_slow,)
settings.register_profile(
    "ci", derandomize=True, deadline=None, suppress_health_check=_UNHURRIED, print_blob=True
)
settings.register_profile(
    "full",
    max_examples=2000,
    derandomize=False,
    deadline=None,
    suppress_health_check=_UNHURRIED,
    print_blob=True,
)
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full",
        action="store_true",
        help="also run the tests marked slow, and hypothesis with its 'full' profile",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--full"):
        settings.load_profile("full")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """For the whole suite a worker more than CPUs, as some wait; none for a part of it."""
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    return len(os.sched_getaffinity(0)) + 1 if whole else 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--full"):
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="a long run; `.ci/full` includes it"))
