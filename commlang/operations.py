"""What a pattern may call: the operations, their arguments and how collectives agree.

Names and arguments are those of torch.distributed 2.13
(https://docs.pytorch.org/docs/2.13/distributed.html).
"""

from __future__ import annotations

from enum import IntEnum, StrEnum

from commlang.records import record


class Kind(IntEnum):
    """What an event is; the value is stored in the columns of a Program."""

    SEND = 0
    RECV = 1
    ALL_REDUCE = 2
    REDUCE = 3
    BROADCAST = 4
    SCATTER = 5
    GATHER = 6
    ALL_GATHER = 7
    REDUCE_SCATTER = 8
    ALL_TO_ALL = 9
    BARRIER = 10
    COPY = 11
    ACCUMULATE = 12
    SCALE = 13
    FILL = 14
    COMPUTE = 15
    EXTERN = 16
    WAIT = 17

    @property
    def is_message(self) -> bool:
        """Whether the event is one half of a point-to-point message."""
        return self <= Kind.RECV

    @property
    def is_collective(self) -> bool:
        """Whether every member of a group takes part in the event."""
        return Kind.ALL_REDUCE <= self <= Kind.BARRIER

    @property
    def is_rooted(self) -> bool:
        """Whether only the data dependence between root and leaf is certain."""
        return Kind.REDUCE <= self <= Kind.GATHER

    @property
    def is_local(self) -> bool:
        """Whether the event concerns its own rank only."""
        return Kind.COPY <= self <= Kind.EXTERN


class ReduceOp(StrEnum):
    """The reduce operations of torch.distributed.ReduceOp."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"
    PREMUL_SUM = "premul_sum"


REDUCE_OPS: tuple[str, ...] = tuple(str(op) for op in ReduceOp)


class Access(StrEnum):
    """What an argument that names data is used for."""

    READ = "read"
    WRITE = "write"
    UPDATE = "update"


@record
class Argument:
    """One argument of an operation.

    `type` is "tensor", "tensors" (a list), "rank", "op", "group", "int", "ints", "number",
    "label" (a string), "matmul" (three ints) or "duration"; `access` is set where it names data.
    """

    name: str
    type: str
    access: Access | None = None
    required: bool = True


@record
class Operation:
    """A callable statement. `asynchronous` tells that a handle may be bound to it."""

    name: str
    kind: Kind
    arguments: tuple[Argument, ...]
    asynchronous: bool = True

    def argument(self, name: str) -> Argument | None:
        """The argument of that name, or None."""
        return next((a for a in self.arguments if a.name == name), None)


_ACCESS = {"<": Access.READ, ">": Access.WRITE, "=": Access.UPDATE}


def _argument(text: str) -> Argument:
    """Read `name:type`, with `?` if optional and `<` read, `>` write or `=` update for data."""
    name, kind = text.split(":")
    required = not kind.endswith("?")
    kind = kind.rstrip("?")
    return Argument(name, kind.rstrip("<>="), _ACCESS.get(kind[-1]), required)


def _operation(name: str, kind: Kind, arguments: str, *, asynchronous: bool = True) -> Operation:
    return Operation(name, kind, tuple(map(_argument, arguments.split())), asynchronous)


_TABLE = (
    _operation("send", Kind.SEND, "tensor:tensor< dst:rank? group:group? tag:int? group_dst:rank?"),
    _operation("recv", Kind.RECV, "tensor:tensor> src:rank? group:group? tag:int? group_src:rank?"),
    _operation("all_reduce", Kind.ALL_REDUCE, "tensor:tensor= op:op? group:group?"),
    _operation(
        "reduce", Kind.REDUCE, "tensor:tensor= dst:rank? op:op? group:group? group_dst:rank?"
    ),
    _operation(
        "broadcast", Kind.BROADCAST, "tensor:tensor= src:rank? group:group? group_src:rank?"
    ),
    _operation(
        "scatter",
        Kind.SCATTER,
        "tensor:tensor> scatter_list:tensors<? src:rank? group:group? group_src:rank?",
    ),
    _operation(
        "gather",
        Kind.GATHER,
        "tensor:tensor< gather_list:tensors>? dst:rank? group:group? group_dst:rank?",
    ),
    _operation("all_gather", Kind.ALL_GATHER, "tensor_list:tensors> tensor:tensor< group:group?"),
    _operation(
        "all_gather_into_tensor",
        Kind.ALL_GATHER,
        "output_tensor:tensor> input_tensor:tensor< group:group?",
    ),
    _operation(
        "all_gather_single",
        Kind.ALL_GATHER,
        "output_tensor:tensor> input_tensor:tensor< group:group?",
    ),
    _operation(
        "reduce_scatter",
        Kind.REDUCE_SCATTER,
        "output:tensor> input_list:tensors< op:op? group:group?",
    ),
    _operation(
        "reduce_scatter_tensor",
        Kind.REDUCE_SCATTER,
        "output:tensor> input:tensor< op:op? group:group?",
    ),
    _operation(
        "reduce_scatter_single",
        Kind.REDUCE_SCATTER,
        "output:tensor> input:tensor< op:op? group:group?",
    ),
    _operation(
        "all_to_all",
        Kind.ALL_TO_ALL,
        "output_tensor_list:tensors> input_tensor_list:tensors< group:group?",
    ),
    _operation(
        "all_to_all_single",
        Kind.ALL_TO_ALL,
        "output:tensor> input:tensor< output_split_sizes:ints? input_split_sizes:ints? "
        "group:group?",
    ),
    _operation("barrier", Kind.BARRIER, "group:group?"),
    _operation("scale", Kind.SCALE, "tensor:tensor= factor:number", asynchronous=False),
    _operation("fill", Kind.FILL, "tensor:tensor> value:number", asynchronous=False),
    _operation(
        "compute",
        Kind.COMPUTE,
        "duration:duration? label:label? matmul:matmul? reads:tensors<? writes:tensors>?",
        asynchronous=False,
    ),
)

OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in _TABLE}
"""Every built-in operation by name."""

FUNCTIONS: dict[str, tuple[int, int]] = {
    "range": (1, 3),
    "reversed": (1, 1),
    "enumerate": (1, 2),
    "zip": (1, 8),
    "len": (1, 1),
    "sum": (1, 1),
    "min": (1, 64),
    "max": (1, 64),
    "abs": (1, 1),
    "log2": (1, 1),
    "log2ceil": (1, 1),
    "share": (3, 3),
    "all": (1, 1),
    "any": (1, 1),
    "premul_sum": (1, 1),
}
"""Functions of the expression language with their least and most positional arguments."""

CONTRACT_FUNCTIONS: dict[str, tuple[int, int]] = {
    "old": (1, 1),
    "concat": (1, 64),
    "fold": (3, 3),
    **{op: (1, 1) for op in REDUCE_OPS if op not in ("sum", "min", "max", "premul_sum")},
}
"""Further functions that only contracts (`ensure`, `assume`) may call."""

TENSOR_METHODS: dict[str, tuple[tuple[str, ...], int]] = {
    "chunks": (("k", "dim"), 1),
    "reshape": ((), 1),
    "transpose": (("dim0", "dim1"), 2),
    "flatten": ((), 0),
}
"""Methods of tensors: argument names (none: any number of ints) and the least number of them."""

TENSOR_ATTRIBUTES: tuple[str, ...] = ("shape", "numel", "ndim")
GROUP_ATTRIBUTES: tuple[str, ...] = ("size", "index", "next", "prev")
