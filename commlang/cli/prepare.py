"""From the options of `commlang run` to a plan and the settings of its run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from commlang.diagnostics import did_you_mean
from commlang.errors import PatternError, UsageError

if TYPE_CHECKING:
    from commlang.execute.environment import RankInfo
    from commlang.execute.options import LaunchOptions
    from commlang.execute.settings import Settings
    from commlang.plan import Plan
    from commlang.resolve.modules import Definition


def prepared(
    file: str, info: RankInfo | None, options: LaunchOptions | None, given: dict[str, Any]
) -> tuple[Plan, Settings]:
    """Everything that is decided before a rank starts, or joins the others."""
    from commlang.verify import find_pattern

    definition = find_pattern(file)
    settings = _settings(given, definition)
    return _plan(definition, info, options, given), settings


def _plan(
    definition: Definition,
    info: RankInfo | None,
    options: LaunchOptions | None,
    given: dict[str, Any],
) -> Plan:
    """Check the pattern for its world, that of the ranks that are there if any, and plan it."""
    from commlang.checks import check_program
    from commlang.expand.run import parameter_names
    from commlang.program import build
    from commlang.verify import default_world, parse_settings, preset_values

    values = parse_settings(given["settings"])
    known = parameter_names(definition.node)
    for name in values:
        if name not in known:
            hint = did_you_mean(name, known) or f"it has {', '.join(known) or 'none'}"
            raise UsageError(
                f"--set {name}: `{definition.node.name}` has no such parameter; {hint}"
            )
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
    program = build(definition, world, values, max_events=given["max_events"])
    if found := check_program(program):
        raise PatternError(found)
    # Its pydantic would cost a refused pattern a fifth of the time.
    from commlang.plan import plan_of

    return plan_of(program, given["max_events"])


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
