"""Starting the ranks of a command, by the launcher that its backend needs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from commlang.cli.guard import DEBUG, say
from commlang.errors import CommlangError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlang.execute.diagnosis import Narrator
    from commlang.execute.options import LaunchOptions
    from commlang.execute.report import RunFailed
    from commlang.execute.settings import Settings


def started(
    entry: Callable[..., Any],
    args: tuple[Any, ...],
    options: LaunchOptions,
    settings: Settings,
    narrator: Narrator,
    preload: tuple[str, ...],
) -> list[Any]:
    """Run `entry(context, *args)` on new ranks of this node; the results, by local rank.

    Modules to `preload` are imported once before a fork. Raises what `launch` does, and UsageError
    for a backend or devices that are not there.
    """
    from commlang.execute.launch import launch
    from commlang.execute.report import RunFailed, RunInterrupted
    from commlang.execute.signals import ignore_signals

    ranks = options.nproc_per_node
    cuda = settings.may_use_cuda(ranks)
    if cuda:
        # Such ranks are spawned, so torch may be imported here, to say at once what is missing.
        from commlang.execute.session import check_devices

        check_devices(settings, ranks)
    watched: Any = {"narrator": narrator, "timeout": settings.timeout}
    try:
        if settings.wants_mpi:
            from commlang.execute.mpi.launch import launch_mpi

            return launch_mpi(entry, args, options, **watched)
        return launch(entry, args, options, **watched, cuda=cuda, preload=preload)
    except RunInterrupted:
        ignore_signals()  # for a second Ctrl-C there is nothing left to end but the message
        raise
    except RunFailed as error:
        raise _plainly(error) from None


def _plainly(error: RunFailed) -> CommlangError:
    """The error of a failed run, without its ranks where the user's mistake is no rank's."""
    causes = [report for report in error.reports if report.rank in error.causes]
    if os.environ.get(DEBUG):
        for report in causes:
            say(report.traceback)
    if causes and all(report.known_code == UsageError.exit_code for report in causes):
        return UsageError(causes[0].message)
    if causes and all(report.message.startswith("error[") for report in causes):
        return CommlangError(causes[0].message)
    return error
