"""What stands around a timeline, in any format: where its times come from, and its notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.draw.words import STEPS, time_text

if TYPE_CHECKING:
    from commlang.draw.scene import Scene

MOST_WAITS = 12


def lane_name(scene: Scene, at: int) -> str:
    """The rank of a lane; of those below it for the same rank, where the times come from."""
    lane = scene.lanes[at]
    return scene.origins[lane.timing] if lane.timing else f"rank {lane.rank}"


def subtitle(scene: Scene) -> str:
    """Where the times come from."""
    if scene.unit == STEPS:
        told = "Program order: an event takes a step once all that it needs are there"
        count = round(scene.last - scene.first)
        steps = f"{count:,} step{'s' * (count != 1)}"
        return f"{told}; {steps}" + (", then a deadlock" if scene.ring else "") + "."
    span = time_text(scene.last - scene.first, scene.unit)
    first, *others = scene.origins
    below = "".join(f"; below it {other}" for other in others)
    return f"{first[:1].upper()}{first[1:]}{below}; {span} in all."


def said(scene: Scene) -> list[str]:
    """The waits of a deadlock in words, and what else is to know of the picture."""
    waits = [f"{turn}: {arrow.tip}" for turn, arrow in enumerate(scene.ring, 1)]
    if len(waits) > MOST_WAITS:
        waits = [*waits[:MOST_WAITS], f"… and {len(waits) - MOST_WAITS} more"]
    return [*waits, *scene.notes]
