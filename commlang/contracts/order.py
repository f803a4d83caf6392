"""When each event takes effect: a moment that comes after those of all that it waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlang.contracts.addresses import TooLarge
from commlang.program.constraints import rendezvous
from commlang.program.cycles import point_levels
from commlang.program.points import find_points

if TYPE_CHECKING:
    from commlang.program import Program
    from commlang.program.columns import Array
    from commlang.program.matching import Collectives, Messages

MAX_LEVELS = 1 << 19


def moments(program: Program, messages: Messages, collectives: Collectives) -> Array:
    """Per row, a number that grows along every path of the program, the same at both ends.

    Of two events that are not ordered either may come first: if they touch the same data, that is
    a race, which other rules report.
    """
    points = find_points(program, local=True)
    level = point_levels(points, rendezvous(program, messages, collectives, points))
    if len(level) and int(level.max()) > MAX_LEVELS:
        raise TooLarge("too many operations come one after the other")
    moment = level[points.start]
    send, recv = messages.send, messages.recv
    moment[send] = moment[recv] = np.maximum(moment[send], moment[recv])
    size = np.diff(collectives.start)
    moment[collectives.row] = np.repeat(level[points.count :], size)
    return moment
