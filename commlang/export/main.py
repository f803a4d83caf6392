"""What stands around the functions of a script: its header, its constants and its main()."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from commlang.dtypes import DType
from commlang.expand.values import Op
from commlang.export.expressions import CannotExport, Writer, integer, quoted
from commlang.export.functions import place_of
from commlang.export.lines import Line, rendered
from commlang.export.names import Names, free_name
from commlang.export.signatures import Signature, is_literal
from commlang.export.wrap import WIDTH, wrapped
from commlang.operations import ReduceOp
from commlang.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlang.export.facts import Facts
    from commlang.export.helpers import Helpers
    from commlang.program import Program
    from commlang.resolve.modules import Definition

Groups = dict[str, list[tuple[int, ...]]]
_MOST_CELLS = 100_000
"""Most cells of a table that is written out."""
_OWN = ("WORLD", "SUBGROUPS", "TIMEOUT")


def subgroups(program: Program, facts: Facts) -> Groups:
    """The groups that something communicates or runs on, beside the world, by label."""
    used = set(program.group.tolist()) | facts.frames if len(program) else facts.frames
    found: Groups = {}
    for number, entry in enumerate(program.groups.entries):
        if number and number in used:
            found.setdefault(entry.label, []).append(entry.members)
    return found


def header(
    program: Program, proofs: tuple[str, ...], command: str, *, externs: bool, groups: bool
) -> str:
    """The docstring of the script: where it is from, what was proven, how to run it."""
    definition = program.definition
    source = Path(definition.module.source.path).name
    name = definition.node.name
    ranks = f"{program.world} ranks" if program.world > 1 else "1 rank"
    told = [
        f"{name} for {ranks}, on torch.distributed.",
        "",
        f"    torchrun --nproc-per-node {program.world} {command}",
        "",
        *wrap(
            f"Written from {source} by commlang {__version__}, which is not needed to run it; torch"
            " 2.13 or newer is. For these parameters and this number of ranks commlang has proven"
            f" the pattern: {', '.join(proofs)}. Branches that no rank takes then are left out.",
            WIDTH - 4,
        ),
        "",
        f"SHA-256 of pattern and imports: {definition.module.digest()}",
    ]
    if groups:
        told += ["", "A program that imports the pattern calls make_groups() first, on every rank."]
    if externs:
        told += ["", "Fill in the functions that raise NotImplementedError first."]
    text = "\n".join(told).replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{text}\n"""'


class Constants:
    """The parameters of the pattern as constants at the top of the script."""

    def __init__(self, program: Program, facts: Facts, helpers: Helpers) -> None:
        self.program, self.helpers = program, helpers
        self.names = Names(frozenset())
        self.writer = Writer(self.names, facts, helpers, program.definition.module)
        self.python: dict[str, str] = {}
        taken: set[str] = set(_OWN)
        self.lines: list[Line] = []
        self.names.bind("world", "WORLD")
        for name, value in program.parameters.items():
            own = self.python[name] = free_name(name.upper(), taken)
            taken.add(own)
            self._line(name, own, value)
            self.names.bind(name, own)

    def _line(self, name: str, own: str, value: Any) -> None:
        node = self.program.definition.node
        param = next((p for p in node.params if p.target.id == name), None)
        place = place_of(self.program.definition, param if param is not None else node)
        given = name in self.program.values
        computed = param is not None and param.default is not None and not is_literal(param.default)
        text = self._value(value)
        if not given and computed and param is not None and param.default is not None:
            text = self.writer.text(param.default)
        self.lines.append(Line(f"{own} = {text}", beside=f"# {place}"))

    def _value(self, value: Any) -> str:
        """A value of the language as an expression of Python."""
        match value:
            case bool():
                return str(value)
            case int():
                return integer(value)
            case Fraction():
                return self.writer.fraction(value)
            case Op(op, factor) if op is ReduceOp.PREMUL_SUM and factor is not None:
                return f"dist._make_nccl_premul_sum({float(factor)!r})"
            case Op(op):
                return f"dist.ReduceOp.{op.name}"
            case DType():
                return f"torch.{value}"
            case str():
                return quoted(value)
            case _ if hasattr(value, "array"):
                array = value.array[value.prefix] if value.prefix else value.array
                if array.size > _MOST_CELLS:
                    hint = "give it a default that computes it"
                    text = f"cannot export a table of {array.size:,} cells; {hint}"
                    raise CannotExport(text)
                return str(array.tolist())
            case _:
                numbers = {int(number) for number in value.flat}
                return integer(numbers.pop())

    def text(self, groups: Groups) -> str:
        """The lines of all constants."""
        lines = [Line(f"WORLD = {self.program.world}"), *self.lines]
        found = rendered(lines, 0)
        found += _subgroup_lines(groups) if groups else []
        return "\n".join([*found, "TIMEOUT = timedelta(minutes=10)"])


def _subgroup_lines(groups: Groups) -> list[str]:
    lines = ["SUBGROUPS = {"]
    for label, lists in groups.items():
        listed = ", ".join(map(_members, lists))
        lines += wrapped(f"{quoted(label)}: [{listed}]", 4, ",")
    return [*lines, "}"]


def _members(members: tuple[int, ...]) -> str:
    steps = {b - a for a, b in pairwise(members)}
    if len(members) > 4 and len(steps) == 1 and (step := steps.pop()) > 0:
        end = members[-1] + 1
        return f"range({members[0]}, {end}{f', {step}' if step > 1 else ''})"
    return str(list(members))


def main_function(
    program: Program,
    functions: Mapping[Definition, str],
    taken: frozenset[str],
    constants: Constants,
    groups: Groups,
) -> list[str]:
    """The functions that run the pattern on data of their own."""
    made = [_MAKE_GROUPS.replace("SORTED", _sorted(groups))] if groups else []
    return [*made, _FILL, _main(program, functions, taken, constants, bool(groups)), _START]


def _sorted(groups: Groups) -> str:
    in_order = all(list(m) == sorted(m) for lists in groups.values() for m in lists)
    return "" if in_order else ", sort_ranks=False"


def _main(
    program: Program,
    functions: Mapping[Definition, str],
    taken: frozenset[str],
    constants: Constants,
    grouped: bool,
) -> str:
    definition = program.definition
    signature = Signature(definition, taken)
    tensors = [signature.python[param.target.id] for param in signature.tensors]
    scalars = [
        f"{signature.python[param.target.id]}={constants.python[param.target.id]}"
        for param in signature.scalars
    ]
    constants.names.bind("world", "world")
    body = [
        *(
            Line(f"{own} = {text}")
            for own, text in zip(tensors, _made(program, constants), strict=True)
        ),
        Line(f"{functions[definition]}({', '.join(['dist.group.WORLD', *tensors, *scalars])})"),
        Line("# A line and its end in one write, since torchrun's ranks share one output."),
        *(_print(f"{own} sums to {{total({own})}}") for own in tensors),
        *([] if tensors else [_print("done")]),
    ]
    if grouped:
        body.insert(0, Line("make_groups()"))
    return _MAIN + "\n".join([*rendered(body, 8), *_LAST])


def _print(text: str) -> Line:
    return Line(f'print(f"rank {{rank}}: {text}\\n", end="")')


def _made(program: Program, constants: Constants) -> list[str]:
    """The tensors that the pattern runs on, each with data of its own."""
    found: list[str] = []
    for number, param in enumerate(Signature(program.definition, frozenset()).tensors):
        assert param.type is not None
        if param.target.id in program.shapes:
            dtype, sizes = program.shapes[param.target.id]
            shape, kind = ", ".join(map(str, sizes)) or "()", f"torch.{dtype}"
        else:
            shape = ", ".join(constants.writer.text(dim) for dim in param.type.shape or ()) or "()"
            known = constants.names.look_up(param.type.name)
            kind = known or f"torch.{param.type.name}"
        found.append(f"fill(torch.empty({shape}, dtype={kind}, device=device), rank, {number})")
    return found


_MAKE_GROUPS = '''\
_made = {}


def make_groups(group=None):
    """Make all groups inside `group`, in one order: every rank of the job calls this first."""
    ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
    for name, lists in SUBGROUPS.items():
        for members in lists:
            members = [ranks[i] for i in members]
            _made[name, tuple(members)] = dist.new_group(members, timeout=TIMEOUTSORTED)'''

_FILL = '''\
def fill(tensor, rank, number):
    """Small whole numbers that differ between ranks and tensors: replace them by your own data."""
    values = torch.arange(tensor.numel(), device=tensor.device) * 7 + rank * 13 + number * 5
    return tensor.copy_((values % 11).view(tensor.shape))


def total(tensor):
    """The sum of all elements, to compare runs by."""
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64).sum().item()'''

_MAIN = """\
def main():
    parser = argparse.ArgumentParser(description="Run the pattern on the ranks of torchrun.")
    parser.add_argument("--backend", help="gloo or nccl; by default nccl where ranks have GPUs")
    args = parser.parse_args()
    if "RANK" not in os.environ:
        parser.error(f"start it with torchrun --nproc-per-node {WORLD}")
    local = int(os.environ["LOCAL_RANK"])
    cuda = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    backend = args.backend or ("nccl" if cuda else "gloo")
    device = torch.device("cuda", local) if "nccl" in backend else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group(backend, timeout=TIMEOUT)
    try:
        rank, world = dist.get_rank(), dist.get_world_size()
        if world != WORLD:
            raise SystemExit(f"{world} ranks; this script is for {WORLD}")
"""

_LAST = ("    finally:", "        dist.destroy_process_group()")
_START = """\
if __name__ == "__main__":
    main()"""
