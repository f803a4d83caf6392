"""From the options of `commlang run` to a plan and the settings of its run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from commlang.cli.auto import auto_of, chosen
from commlang.cli.guard import say
from commlang.diagnostics import did_you_mean
from commlang.errors import UsageError

if TYPE_CHECKING:
    from commlang.execute.environment import RankInfo
    from commlang.execute.options import LaunchOptions
    from commlang.execute.settings import Settings
    from commlang.plan import Plan
    from commlang.program import Program
    from commlang.resolve.modules import Definition
    from commlang.transports import Target

UNDECIDED = "CL241"


def prepared(
    file: str, info: RankInfo | None, options: LaunchOptions | None, given: dict[str, Any]
) -> tuple[Plan, Settings]:
    """Everything that is decided before a rank starts, or joins the others."""
    from commlang.verify import find_pattern

    auto = auto_of(file)
    definition = auto.definition if auto else find_pattern(file)
    settings = _settings(given, definition)
    program = _program(definition, info, options, given)
    local = _local_ranks(program.world, info, options)
    target, quiet = target_of(settings, local), bool(info and info.rank)
    if auto:
        program = chosen(auto, program, target, given, quiet=quiet)
    sure = check_and_say(program, target, given["allow_hazards"], quiet=quiet)
    # Its pydantic would cost a refused pattern a fifth of the time.
    from commlang.plan import plan_of, proofs_of
    from commlang.schedule import schedule
    from commlang.transports import PORTABLE

    scheduled = schedule(program, target, given["schedule"])
    if given["verbose"] and not (info and info.rank):
        for name in scheduled.passes:
            say(f"{name}: applied")
        for why in scheduled.refused:
            say(f"{why} (not applied)")
    proofs = proofs_of(target if sure else PORTABLE)
    return plan_of(scheduled, given["max_events"], proofs), settings


def _program(
    definition: Definition,
    info: RankInfo | None,
    options: LaunchOptions | None,
    given: dict[str, Any],
) -> Program:
    """Expand the pattern for its world, that of the ranks that are there if any."""
    from commlang.program import build
    from commlang.verify import default_world, preset_values

    values = parameter_settings(definition, given["settings"])
    world = info.world_size if info else None
    if options is not None and given["nproc_per_node"]:
        world = given["nproc_per_node"] * options.nodes
    if given["preset"]:
        world, preset = preset_values(definition, given["preset"], world)
        values = {**preset, **values}
    if world is None:
        world = default_world(definition, values)
    if options is not None and world % options.nodes:
        raise UsageError(
            f"{world} ranks do not spread evenly over {options.nodes} nodes; give --nproc-per-node"
        )
    return build(definition, world, values, max_events=given["max_events"])


def parameter_settings(definition: Definition, texts: tuple[str, ...]) -> dict[str, Any]:
    """The parameters that `--set` gives; raises UsageError for one that the pattern has not."""
    from commlang.expand.run import parameter_names
    from commlang.verify import parse_settings

    values = parse_settings(texts)
    known = parameter_names(definition.node)
    for name in values:
        if name not in known:
            hint = did_you_mean(name, known) or f"it has {', '.join(known) or 'none'}"
            raise UsageError(
                f"--set {name}: `{definition.node.name}` has no such parameter; {hint}"
            )
    return values


def _local_ranks(world: int, info: RankInfo | None, options: LaunchOptions | None) -> int | None:
    """How many ranks there are if all are on this node, else None."""
    if info is not None:
        return world if info.local_world_size == world else None
    return world if options is not None and options.nodes == 1 else None


def target_of(settings: Settings, local_ranks: int | None) -> Target:
    """What the run will use, as far as it can be told before torch is imported.

    With several nodes and nothing chosen the ranks agree on a device only later; the plan must not
    depend on what this node has.
    """
    from commlang.transports import PORTABLE, Backend, NcclInit, Target

    if settings.device == settings.backend == "auto" and local_ranks is None:
        return PORTABLE
    cuda = settings.device != "cpu" and settings.may_use_cuda(local_ranks or 1)
    device = "cuda" if cuda else "cpu"
    named = dict(part.split(":", 1) for part in settings.backend.split(",") if ":" in part)
    name = named.get(device, settings.backend)
    if name == "auto":
        name = "nccl" if cuda else "gloo"
    if name not in list(Backend):
        return Target(device=device)
    # `run` gives device_id to init_process_group, so NCCL makes its communicators at once.
    return Target(Backend(name), NcclInit.EAGER, device)


def check_and_say(program: Program, target: Target, allow_hazards: bool, *, quiet: bool) -> bool:
    """Refuse what is wrong, and what may hang on NCCL; say what else there is.

    Returns whether no hazard is left, be it one that a comment or an option allows.
    """
    from commlang.checks import check_program
    from commlang.verify.refusal import is_sure, refuse

    found = check_program(program, target)
    hint = "give --allow-hazards to run it all the same"
    warnings = refuse(found, target, allow_hazards=allow_hazards, hint=hint)
    if not quiet:
        for warning in warnings:
            if warning.code != UNDECIDED:  # the run tells, on real data
                say(warning.render())
    return is_sure(found)


def launch_options(given: dict[str, Any]) -> LaunchOptions:
    from commlang.execute.options import LaunchOptions

    names = ("nnodes", "node_rank", "master_addr", "master_port", "standalone", "start_method")
    more = ("rdzv_backend", "rdzv_endpoint", "rdzv_id", "local_addr")
    conf = [part.partition("=") for part in given["rdzv_conf"].split(",") if part.strip()]
    for key, equals, _ in conf:
        if not equals or not key.strip():
            raise UsageError(f"--rdzv-conf {given['rdzv_conf']}: write KEY=VALUE,KEY=VALUE")
    options = LaunchOptions(
        nproc_per_node=given["nproc_per_node"] or 1,
        rdzv_conf={key.strip(): value.strip() for key, _, value in conf},
        **{name: given[name] for name in (*names, *more)},
    )
    return options.checked()


def _settings(given: dict[str, Any], definition: Definition) -> Settings:
    from commlang.execute.settings import Settings

    return Settings(
        backend=given["backend"],
        device=given["device"],
        timeout=given["timeout"],
        iterations=given["iters"],
        warmup=given["warmup"],
        seed=given["seed"],
        externs=tuple(_externs(given["externs"], definition).items()),
        trace=given["trace"],
        predict=given["predict"],
    )


def _externs(texts: tuple[str, ...], definition: Definition) -> dict[str, str]:
    """Python functions by the names of the externs that they stand for."""
    from importlib.util import find_spec

    known = _known_externs(definition)
    found: dict[str, str] = {}
    for text in texts:
        name, _, target = text.partition("=")
        module, _, function = target.partition(":")
        if not all(part.isidentifier() for part in (name, function, *module.split("."))):
            hint = "write NAME=MODULE:FUNCTION, as in `--extern forward=my_model:forward`"
            raise UsageError(f"--extern {text}: {hint}")
        if name not in known:
            hint = did_you_mean(name, known) or f"it has {', '.join(known) or 'none'}"
            raise UsageError(
                f"--extern {text}: `{definition.node.name}` has no extern `{name}`; {hint}"
            )
        if name in found:
            raise UsageError(f"--extern {text}: `{name}` is given twice")
        # An installed command does not look into the working directory, where they mostly are.
        if "" not in sys.path:
            sys.path.insert(0, "")
        if find_spec(module.partition(".")[0]) is None:
            raise UsageError(f"--extern {text}: there is no Python module `{module}` here")
        found[name] = target
    return found


def _known_externs(definition: Definition) -> list[str]:
    from commlang.syntax import ast

    symbols = [item for m in definition.module.reachable() for item in m.symbols.items()]
    return list(dict.fromkeys(name for name, s in symbols if isinstance(s.node, ast.Extern)))
