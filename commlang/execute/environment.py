"""Whether this process was started as a rank, read from the launcher's environment variables."""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Literal

from commlang.errors import UsageError
from commlang.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping

Source = Literal["torchrun", "slurm", "mpi"]

# Slurm numbers its own steps (pending, extern, batch, interactive shell) from here upwards.
_SLURM_RESERVED_STEP = 0xFFFFFFF0
_TORCH_DEFAULT_PORT = 29500


@record
class RankInfo:
    """This process's place among the ranks, and where they meet.

    `local_world_size` is None where the launcher does not say it. `node` names the node in a way
    that all of its ranks share ("" if unknown). `master_addr` and `master_port` are both None only
    if `detect` was told that they are not needed.
    """

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int | None
    node: str
    master_addr: str | None
    master_port: int | None
    source: Source

    @property
    def spans_nodes(self) -> bool:
        """Whether some rank may live on another node."""
        return self.local_world_size != self.world_size


def detect(env: Mapping[str, str], *, need_master: bool = True) -> RankInfo | None:
    """The place of this process among ranks that are already running, or None if it is alone.

    torchrun's variables win over Slurm's, and Slurm's over MPI's, since torchrun is often itself
    started by srun, and srun often by way of PMI.

    Raises UsageError if the variables are incomplete, contradict one another or are not numbers.
    """
    if "RANK" in env or "LOCAL_RANK" in env:
        return _torchrun(env, need_master)
    if _is_slurm_rank(env):
        return _slurm(env)
    for names in (_OPEN_MPI, _PMI):
        if names.rank in env or names.size in env:
            return _mpi(env, names, need_master)
    return None


def first_host(nodelist: str) -> str:
    """The first host of a Slurm node list: `gpu[07-09,12],login` gives `gpu07`."""
    host = nodelist.strip()
    while match := re.match(r"([^\[\],]*)\[([^\[\],-]+)[^\[\]]*\](.*)", host):
        head, first, tail = match.groups()
        host = head + first + tail
    host = host.split(",")[0]
    if not re.fullmatch(r"[A-Za-z0-9._:-]+", host):
        raise UsageError(f"no host can be read from the node list {nodelist!r}; set MASTER_ADDR")
    return host


def _torchrun(env: Mapping[str, str], need_master: bool) -> RankInfo:
    _require(env, ("RANK", "WORLD_SIZE"), "a rank started by torchrun")
    addr, port = _master(env)
    if addr is None and need_master:
        _require(env, ("RANK", "MASTER_ADDR", "MASTER_PORT"), "a rank started by torchrun")
    return _checked(
        RankInfo(
            rank=_number(env, "RANK"),
            world_size=_number(env, "WORLD_SIZE"),
            local_rank=_number(env, "LOCAL_RANK", 0),
            local_world_size=_optional(env, "LOCAL_WORLD_SIZE"),
            node=env.get("GROUP_RANK", ""),
            master_addr=addr,
            master_port=port,
            source="torchrun",
        ),
        ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    )


def _is_slurm_rank(env: Mapping[str, str]) -> bool:
    """Whether srun started this process as one of several tasks.

    SLURM_PROCID alone does not say so: a batch script and an salloc shell carry it too (as 0, next
    to the job's SLURM_NTASKS), and whoever takes those for rank 0 waits for ever for the others.
    Only a job step has a step id; the shell's own step has a reserved one, or a terminal.
    """
    step = env.get("SLURM_STEP_ID", env.get("SLURM_STEPID", ""))
    if "SLURM_PROCID" not in env or not step or "SLURM_PTY_PORT" in env:
        return False
    if step.isdecimal() and int(step) >= _SLURM_RESERVED_STEP:
        return False
    size = _slurm_size(env)
    return size is None or env[size] != "1"


def _slurm_size(env: Mapping[str, str]) -> str | None:
    """The variable that holds the number of tasks; the step's own wins over the job's."""
    names = ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS")
    return next((name for name in names if name in env), None)


def _slurm(env: Mapping[str, str]) -> RankInfo:
    size = _slurm_size(env)
    if size is None:
        raise UsageError(_incomplete("a rank started by srun", ["SLURM_PROCID"], ["SLURM_NTASKS"]))
    world_size = _number(env, size)
    if (stated := _optional(env, "WORLD_SIZE")) not in (None, world_size):
        raise UsageError(f"WORLD_SIZE={stated} contradicts {size}={world_size}; unset WORLD_SIZE")
    addr, port = _slurm_master(env)
    local_size = world_size if _optional(env, "SLURM_STEP_NUM_NODES") == 1 else None
    return _checked(
        RankInfo(
            rank=_number(env, "SLURM_PROCID"),
            world_size=world_size,
            local_rank=_number(env, "SLURM_LOCALID", 0),
            local_world_size=local_size,
            node=env.get("SLURM_NODEID", ""),
            master_addr=addr,
            master_port=port,
            source="slurm",
        ),
        ("SLURM_PROCID", size, "SLURM_LOCALID", size),
    )


def _slurm_master(env: Mapping[str, str]) -> tuple[str, int]:
    """Where rank 0 listens: the first host of the step, at a port made from the job's id.

    SLURM_LAUNCH_NODE_IPADDR comes last: it is the node that srun was typed on, which may be a
    login node that runs no rank.
    """
    addr = env.get("MASTER_ADDR", "")
    nodes = env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST", "")
    if not addr and _optional(env, "SLURM_STEP_NUM_NODES") == 1:
        addr = "127.0.0.1"
    elif not addr and nodes:
        addr = first_host(nodes)
    addr = addr or env.get("SLURM_LAUNCH_NODE_IPADDR", "")
    if not addr:
        missing = ["SLURM_JOB_NODELIST or MASTER_ADDR"]
        raise UsageError(_incomplete("a rank started by srun", ["SLURM_PROCID"], missing))
    if "MASTER_PORT" in env:
        return addr, _port(env)
    job = _number(env, "SLURM_JOB_ID", 0) * 31 + _number(env, "SLURM_STEP_ID", 0)
    return addr, _port_from(job)


@record
class _MpiNames:
    """The variables of one family of MPI launchers."""

    rank: str
    size: str
    local_rank: str
    local_size: str
    job: str


_OPEN_MPI = _MpiNames(
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "PMIX_NAMESPACE",
)
_PMI = _MpiNames("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_JOBID")


def _mpi(env: Mapping[str, str], names: _MpiNames, need_master: bool) -> RankInfo:
    _require(env, (names.rank, names.size), "a rank started by mpirun")
    world_size = _number(env, names.size)
    local_size = _optional(env, names.local_size)
    addr, port = _master(env)
    if addr is None and world_size in (1, local_size):
        # All on one node, so that loopback will do; the job's name keeps two jobs apart.
        addr, port = "127.0.0.1", _TORCH_DEFAULT_PORT
        if names.job in env:
            port = _port_from(zlib.crc32(env[names.job].encode()))
    if addr is None and need_master:
        raise UsageError(
            f"{names.rank} is set but not where the ranks meet, and mpirun does not say which node "
            "rank 0 is on; give it: mpirun -x MASTER_ADDR=<host of rank 0> -x MASTER_PORT=29500 ..."
        )
    return _checked(
        RankInfo(
            rank=_number(env, names.rank),
            world_size=world_size,
            local_rank=_number(env, names.local_rank, 0),
            local_world_size=local_size,
            node="",
            master_addr=addr,
            master_port=port,
            source="mpi",
        ),
        (names.rank, names.size, names.local_rank, names.local_size),
    )


def _checked(info: RankInfo, names: tuple[str, str, str, str]) -> RankInfo:
    """`info`, if its numbers agree; `names` are rank, world, local rank and local world."""
    local_size = info.world_size if info.local_world_size is None else info.local_world_size
    ordered = (
        (names[0], info.rank, names[1], info.world_size),
        (names[2], info.local_rank, names[3], local_size),
    )
    for name, value, limit_name, limit in ordered:
        if value >= limit:
            raise UsageError(f"{name}={value} contradicts {limit_name}={limit}; ranks count from 0")
    if local_size > info.world_size:
        raise UsageError(f"{names[3]}={local_size} contradicts {names[1]}={info.world_size}")
    return info


def _master(env: Mapping[str, str]) -> tuple[str | None, int | None]:
    if "MASTER_ADDR" not in env and "MASTER_PORT" not in env:
        return None, None
    _require(env, ("MASTER_ADDR", "MASTER_PORT"), "a rank")
    if not env["MASTER_ADDR"].strip():
        raise UsageError("MASTER_ADDR is empty; it must name the host of rank 0")
    return env["MASTER_ADDR"], _port(env)


def _port(env: Mapping[str, str]) -> int:
    port = _number(env, "MASTER_PORT")
    if port > 65535:
        raise UsageError(f"MASTER_PORT={port} is not a port; write a number below 65536")
    return port


def _port_from(seed: int) -> int:
    """A port that all ranks of one job agree on, below the range used for outgoing connections."""
    return 16000 + seed % 16000


def _require(env: Mapping[str, str], names: tuple[str, ...], what: str) -> None:
    missing = [name for name in names if name not in env]
    if missing:
        present = [name for name in (*names, "LOCAL_RANK") if name in env]
        raise UsageError(_incomplete(what, present, missing))


def _incomplete(what: str, present: list[str], missing: list[str]) -> str:
    return (
        f"the environment of {what} is incomplete: {', '.join(present)} set, but not "
        f"{', '.join(missing)}. Set all of them, or unset them to let commlang start the ranks."
    )


def _number(env: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = env.get(name)
    if text is None and default is not None:
        return default
    # isdecimal also refuses signs, so that -1 is not taken for a rank.
    if text is None or not (text.isascii() and text.isdecimal()):
        raise UsageError(f"{name}={text!r} is not a number from 0 up")
    return int(text)


def _optional(env: Mapping[str, str], name: str) -> int | None:
    return _number(env, name) if name in env else None
