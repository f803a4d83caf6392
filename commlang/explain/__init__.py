"""Why a job hangs: PyTorch Flight Recorder dumps of its ranks, side by side. Needs no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlang.errors import UsageError
from commlang.explain.findings import Finding, finding_of, no_dump, unfinished
from commlang.explain.groups import group_findings
from commlang.explain.job import Job
from commlang.explain.messages import message_problems
from commlang.explain.problems import problems_of
from commlang.explain.read import read_dumps
from commlang.explain.waits import find_roots
from commlang.explain.words import Speaker, ranks_text
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commlang.program import Program


@record
class Explanation:
    """What a job's dumps show: the findings, that of most consequence first, and what limits it."""

    world: int
    ranks: tuple[int, ...]
    backends: tuple[str, ...]
    operations: int
    groups: int
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]


def explain(
    paths: Sequence[str],
    expand: Callable[[int], Program] | None = None,
    world: int | None = None,
) -> Explanation:
    """Explain the dumps in files and folders; raises UsageError if they cannot be read.

    `expand` makes the program of the pattern that ran, for so many ranks; then calls are told in
    its lines.
    """
    dumps = read_dumps(paths)
    job = Job(dumps, world)
    if expand is None:
        return explain_job(job, Speaker(job))
    from commlang.explain.numbers import group_numbers
    from commlang.explain.pattern import speaker_of

    program = expand(job.world)
    numbers = group_numbers(Job(dumps, program.world), program)
    members = {key: program.groups.entries[n].members for key, n in numbers.items()}
    job = Job(dumps, program.world, members)
    return explain_job(job, speaker_of(job, program, numbers))


def explain_job(job: Job, speaker: Speaker) -> Explanation:
    """Explain dumps that were read."""
    operations = sum(len(dump.entries) for dump in job.dumps.values())
    if not operations:
        raise UsageError(
            "the dumps have no operation; is TORCH_FR_BUFFER_SIZE 0, or has the job only sent and "
            "received on gloo, which records neither?"
        )
    outside = [rank for rank in job.dumps if rank >= job.world]
    if outside:
        raise UsageError(f"{ranks_text(outside)}: the world has {job.world} ranks only")
    findings = [*group_findings(job)]
    if not findings:
        problems = [p for key in job.groups for p in problems_of(job, key)]
        problems += message_problems(job)
        findings += [finding_of(root, speaker) for root in find_roots(problems)]
    if not findings and speaker.inside():
        findings.append(unfinished(speaker.inside(), speaker))
    if not findings and job.missing:
        findings.append(no_dump(job.missing))
    return Explanation(
        job.world,
        tuple(job.dumps),
        job.backends,
        operations,
        len(job.groups),
        tuple(findings),
        (*_notes(job, findings), *_astray(speaker, findings)),
    )


def _notes(job: Job, findings: Sequence[Finding]) -> list[str]:
    notes: list[str] = []
    named = {rank for finding in findings for rank in finding.ranks}
    unnamed = [rank for rank in job.missing if rank not in named]
    if unnamed:
        notes.append(f"{ranks_text(unnamed)} left no dump; what is said is of the others")
    if not job.world_is_known:
        notes.append(
            f"the dumps do not say how many ranks there are; {job.world} are taken from their "
            "names (--world N says it)"
        )
    if not job.records_messages:
        notes.append("gloo records no send and no recv, so a rank that waits in one is not seen")
    lost = [rank for rank, dump in job.dumps.items() if dump.lost]
    if lost:
        notes.append(
            f"{ranks_text(lost)}: older operations are not in the dump, so nothing is said of them"
        )
    return notes


def _astray(speaker: Speaker, findings: Sequence[Finding]) -> list[str]:
    """Ranks that did something else than the pattern says, unless that is what was found."""
    if any(finding.kind == "mismatch" for finding in findings):
        return []
    lines: dict[str, list[int]] = {}
    for rank in speaker.job.dumps:
        found = speaker.astray(rank)
        if found:
            entry, expected = found
            told = f"issued {Speaker.entry(speaker, entry)} where the pattern has {expected}"
            lines.setdefault(told, []).append(rank)
    return [f"{ranks_text(r)} {told}; is it the one that ran?" for told, r in lines.items()]
