"""The small functions that a script brings along, each only if it is used."""

from __future__ import annotations

import re

_TEXTS = {
    "share": '''
def share(n, k, i):
    """The length of part i when n elements are cut into k parts, the longer ones first."""
    return n // k + (i < n % k)
''',
    "exact": '''
def exact(a, b):
    """a / b without rounding: an int where it comes out even."""
    ratio = Fraction(a) / Fraction(b)
    return ratio.numerator if ratio.denominator == 1 else ratio
''',
    "number": '''
def number(value):
    """A fraction as a float."""
    return float(value) if isinstance(value, Fraction) else value
''',
    "Chunks": '''
class Chunks:
    """A tensor cut into k views as by tensor_split; a slice of them is one view."""

    def __init__(self, tensor, k, dim=0):
        self.tensor, self.k, self.dim = tensor, k, dim

    def __len__(self):
        return self.k

    def __getitem__(self, index):
        if isinstance(index, slice) and index.step is not None:
            return [self[i] for i in range(self.k)[index]]
        index = range(self.k)[index]
        first, last = (index, index + 1) if isinstance(index, int) else (index.start, index.stop)
        least, longer = divmod(self.tensor.shape[self.dim], self.k)
        start, end = (i * least + min(i, longer) for i in (first, last))
        return self.tensor.narrow(self.dim, start, end - start)
''',
    "accumulate": '''
_ACCUMULATE = {
    dist.ReduceOp.SUM: torch.add,
    dist.ReduceOp.PRODUCT: torch.mul,
    dist.ReduceOp.MIN: torch.minimum,
    dist.ReduceOp.MAX: torch.maximum,
    dist.ReduceOp.BAND: torch.bitwise_and,
    dist.ReduceOp.BOR: torch.bitwise_or,
    dist.ReduceOp.BXOR: torch.bitwise_xor,
}


def accumulate(target, source, op):
    """Reduce source into target."""
    _ACCUMULATE[op](target, source.to(target.dtype), out=target)
''',
    "send_op": '''
def send_op(tensor, dst, group, tag=0):
    """A send to rank dst of the group, to be started together with others."""
    return dist.P2POp(dist.isend, tensor, group=group, tag=tag, group_peer=dst)
''',
    "recv_op": '''
def recv_op(tensor, src, group, tag=0):
    """A recv from rank src of the group, to be started together with others."""
    return dist.P2POp(dist.irecv, tensor, group=group, tag=tag, group_peer=src)
''',
    "start": '''
def start(*messages):
    """Start all messages at once; returns what to wait for."""
    return dist.batch_isend_irecv(list(messages)) if messages else []
''',
    "start in groups": '''
def start(*messages):
    """Start all messages at once, as one batch for each group; returns what to wait for."""
    works = []
    for name in sorted({message.group.group_name for message in messages}):
        works += dist.batch_isend_irecv([m for m in messages if m.group.group_name == name])
    return works
''',
    "exchange": '''
def exchange(*messages):
    """Start all messages at once, then wait for all."""
    for work in start(*messages):
        work.wait()
''',
    "wait_all": '''
def wait_all(works):
    """Wait for all works in a list or a dict, and forget them."""
    for work in list(works.values() if isinstance(works, dict) else works):
        work.wait()
    works.clear()
''',
    "Branch": '''
class Branch(threading.Thread):
    """Runs a function beside other communication; `wait` ends it."""

    def __init__(self, function):
        super().__init__(daemon=True)
        self.function, self.error = function, None
        self.device = torch.cuda.current_device() if torch.cuda.is_initialized() else None
        self.start()

    def run(self):
        try:
            if self.device is not None:
                torch.cuda.set_device(self.device)
            self.function()
        except BaseException as error:
            self.error = error

    def wait(self):
        self.join()
        if self.error is not None:
            raise self.error
''',
    "Ranks": '''
class Ranks:
    """Some ranks of a pattern, numbered as the pattern does; `group` is torch's group of them."""

    def __init__(self, members, rank, group):
        self.members, self.group = list(members), group
        self.size = len(self.members)
        if rank in self.members:
            self.index = self.members.index(rank)
            self.next = self.members[(self.index + 1) % self.size]
            self.prev = self.members[(self.index - 1) % self.size]

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return self.members[index]

    def place(self, rank):
        """The place of a rank in the group."""
        return self.members.index(rank)
''',
    "subgroup": '''
def subgroup(group, name, members):
    """Some ranks of `group`. Nothing here communicates on them alone, so they need no group."""
    return Ranks(members, dist.get_rank(group), None)
''',
    "subgroup in groups": '''
def subgroup(group, name, members):
    """The group that make_groups() made of these ranks of `group` under that name."""
    if name in SUBGROUPS and not _made:
        raise RuntimeError("call make_groups() first, on every rank")
    ranks = dist.get_process_group_ranks(group)
    made = _made.get((name, tuple(ranks[i] for i in members)))
    return Ranks(members, dist.get_rank(group), made)
''',
    "mesh": '''
def mesh(group, name, **axes):
    """Lay the ranks of `group` out in a grid, the last axis fastest; this rank's line on each."""
    rank, stride, lines = dist.get_rank(group), dist.get_world_size(group), []
    for axis, size in axes.items():
        stride //= size
        first = rank - rank // stride % size * stride
        members = range(first, first + size * stride, stride)
        lines.append(subgroup(group, f"{name}.{axis}", members))
    return lines
''',
    "compute": '''
def compute(label="", duration=0.0, matmul=None, reads=(), writes=()):
    """A stand-in for work of your own that takes time; it changes no data."""
    if matmul is None:
        time.sleep(duration)
        return
    m, n, k = matmul
    first = [*reads, *writes, torch.empty(0)][0]
    kind = first.dtype if first.is_floating_point() else torch.float32
    a = torch.ones(m, k, dtype=kind, device=first.device)
    torch.mm(a, torch.ones(k, n, dtype=kind, device=first.device))
''',
    "device_of": '''
def device_of(group):
    """Where tensors for a group have to be."""
    nccl = "nccl" in dist.get_backend(group)
    return torch.device("cuda", torch.cuda.current_device()) if nccl else torch.device("cpu")
''',
    "Then": '''
class Then:
    """A work with something left to do once the communication is over."""

    def __init__(self, work, after):
        self.work, self.after = work, after

    def wait(self):
        self.work.wait()
        self.after()


def ended(work, async_op):
    """The work itself if it was asked for, else None once it has ended."""
    if async_op:
        return work
    work.wait()
    return None
''',
    "all_gather_uneven": '''
def all_gather_uneven(outputs, tensor, group=None, async_op=False):
    """all_gather of parts that differ in length, which gloo refuses: pad them to one length."""
    padded = tensor.new_zeros(max(output.numel() for output in outputs))
    padded[: tensor.numel()] = tensor.view(-1)
    rows = [torch.empty_like(padded) for _ in outputs]

    def unpack():
        for output, row in zip(outputs, rows, strict=True):
            output.copy_(row[: output.numel()].view_as(output))

    return ended(Then(dist.all_gather(rows, padded, group=group, async_op=True), unpack), async_op)
''',
    "reduce_scatter_uneven": '''
def reduce_scatter_uneven(output, inputs, op=dist.ReduceOp.SUM, group=None, async_op=False):
    """reduce_scatter of parts that differ in length, which gloo refuses: reduce all, keep one."""
    whole = torch.cat([part.view(-1) for part in inputs])
    first = sum(part.numel() for part in inputs[: dist.get_rank(group)])
    own = whole[first : first + output.numel()].view_as(output)
    work = dist.all_reduce(whole, op=op, group=group, async_op=True)
    return ended(Then(work, lambda: output.copy_(own)), async_op)
''',
    "all_to_all_uneven": '''
def all_to_all_uneven(outputs, inputs, group=None, async_op=False):
    """all_to_all of parts that differ in length, which gloo takes only as splits of one tensor."""
    come, go = ([part.numel() for part in parts] for parts in (outputs, inputs))
    whole = torch.cat([part.view(-1) for part in inputs])
    received = whole.new_empty(sum(come))

    def unpack():
        for output, part in zip(outputs, received.split(come), strict=True):
            output.copy_(part.view_as(output))

    work = dist.all_to_all_single(received, whole, come, go, group=group, async_op=True)
    return ended(Then(work, unpack), async_op)
''',
}

_GROUPED = " in groups"
"""Behind the name of the form that a helper has in a script with groups of its own."""

_NEEDS = {
    "exchange": ("start",),
    "subgroup": ("Ranks",),
    "mesh": ("subgroup",),
    "exact": ("Fraction",),
    "number": ("Fraction",),
    "all_gather_uneven": ("Then",),
    "reduce_scatter_uneven": ("Then",),
    "all_to_all_uneven": ("Then",),
}
_DEFINED = re.compile(r"^(?:def|class) (\w+)|^(_\w+) = ", re.MULTILINE)

NAMES = frozenset(
    name for text in _TEXTS.values() for match in _DEFINED.findall(text) for name in match if name
) | {"make_groups", "_made", "fill"}
"""All names that a script may define beside those of the patterns."""


class Helpers:
    """Which helpers a script uses."""

    def __init__(self, *, grouped: bool) -> None:
        self._used: set[str] = set()
        self._grouped = grouped

    def use(self, name: str) -> str:
        """The name of a helper, which the script will then have."""
        self._used.add(name)
        for other in _NEEDS.get(name, ()):
            self.use(other)
        return name

    def uses(self, name: str) -> bool:
        """Whether a helper is used."""
        return name in self._used

    def chunks(self, tensor: str, arguments: str) -> str:
        """A tensor cut into views: by torch, unless slices of them are used somewhere."""
        if "Chunks" in self._used:
            return f"Chunks({tensor}, {arguments})"
        return f"{tensor}.tensor_split({arguments})"

    def text(self) -> str:
        """The text of all that are used."""
        texts: list[str] = []
        for name, text in _TEXTS.items():
            plain = name.removesuffix(_GROUPED)
            chosen = self._grouped and plain + _GROUPED in _TEXTS
            if plain in self._used and name == plain + _GROUPED * chosen:
                texts.append(text.strip("\n"))
        return "\n\n\n".join(texts)
