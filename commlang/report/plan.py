"""A plan for people: what was proven and what each rank will do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.report.text import WIDTH, counted, parameters_text, same_file, short_path, wrapped
from commlang.schedule import Act

if TYPE_CHECKING:
    from commlang.plan import Plan, PlanGroup
    from commlang.schedule import Action

_SHOWN = 40
_GROUPS = 6


def render_plan(plan: Plan) -> str:
    """The plan's parameters, groups and the actions of rank 0."""
    program = plan.program()
    actions = plan.actions(0, program)
    lines = [
        *wrapped(plan.pattern + parameters_text(plan.parameters)),
        f"  {counted(plan.world, 'rank')}, {counted(plan.events, 'event')}",
        f"  proven: {', '.join(plan.proofs)}",
        *wrapped(f"  groups: {_groups(plan)}"),
        f"  fingerprint: {plan.fingerprint[:16]}",
        f"  rank 0 does {counted(len(actions), 'action')}:",
    ]
    file = plan.path
    for action in actions[:_SHOWN]:
        site = program.site_of(action.row)
        line, column = site.source.position(site.span.start)
        if not same_file(site.source.path, file):
            file = site.source.path
            lines.append(f"    {short_path(file)}")
        texts = dict.fromkeys(program.text(row) for row in _told(action))
        told = f"    {action.act.value:5}  {line}:{column}  {' | '.join(texts)}"
        lines.append(told if len(told) <= WIDTH else f"{told[: WIDTH - 1]}…")
    if len(actions) > _SHOWN:
        lines.append(f"    … {len(actions) - _SHOWN:,} more")
    return "\n".join(lines)


def _told(action: Action) -> tuple[int, ...]:
    return (action.row,) if action.act is Act.JOIN else action.rows


def _groups(plan: Plan) -> str:
    used = [group for group in plan.groups if group.used]
    more = f", … {len(used) - _GROUPS:,} more" if len(used) > _GROUPS else ""
    return ", ".join(map(_group, used[:_GROUPS])) + more if used else "none"


def _group(group: PlanGroup) -> str:
    if len(group.ranks) <= 8:
        return f"{group.label} {list(group.ranks)}"
    return f"{group.label} ({counted(len(group.ranks), 'rank')})"
