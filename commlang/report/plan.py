"""A plan for people: what was proven and what each rank will do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.schedule import Act, linearise

if TYPE_CHECKING:
    from commlang.plan import Plan
    from commlang.schedule import Action

_SHOWN = 40


def render_plan(plan: Plan) -> str:
    """The plan's parameters, groups and the actions of rank 0."""
    program = plan.program()
    lines = [
        f"{plan.pattern}: {plan.world} ranks, {plan.events:,} events",
        f"  parameters: {', '.join(f'{n} = {v}' for n, v in plan.parameters.items()) or 'none'}",
        f"  proven: {', '.join(plan.proofs)}",
        f"  groups: {_groups(plan)}",
        f"  fingerprint: {plan.fingerprint[:16]}",
    ]
    actions = linearise(program, 0, lambda: program)
    lines.append(f"  rank 0 does {len(actions):,} actions:")
    for action in actions[:_SHOWN]:
        line, column = program.site_of(action.row).source.position(
            program.site_of(action.row).span.start
        )
        texts = dict.fromkeys(program.text(row) for row in _told(action))
        lines.append(f"    {action.act.value:5}  {line}:{column}  {' | '.join(texts)}")
    if len(actions) > _SHOWN:
        lines.append(f"    … {len(actions) - _SHOWN:,} more")
    return "\n".join(lines)


def _told(action: Action) -> tuple[int, ...]:
    return (action.row,) if action.act is Act.JOIN else action.rows


def _groups(plan: Plan) -> str:
    used = [g for g in plan.groups if g.used]
    if not used:
        return "none"
    shown = [f"{g.label} {list(g.ranks)}" if len(g.ranks) <= 8 else f"{g.label} ({len(g.ranks)} ranks)" for g in used]
    more = f", … {len(used) - 6} more" if len(used) > 6 else ""
    return ", ".join(shown[:6]) + more
