"""Reading a rank's place from its environment."""

from __future__ import annotations

import pytest

from commlang.errors import UsageError
from commlang.execute.environment import RankInfo, detect, first_host

TORCHRUN = {
    "RANK": "5",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "4",
    "GROUP_RANK": "1",
    "MASTER_ADDR": "node0",
    "MASTER_PORT": "29400",
}
SRUN = {
    "SLURM_JOB_ID": "1234",
    "SLURM_STEP_ID": "2",
    "SLURM_PROCID": "3",
    "SLURM_NTASKS": "8",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
    "SLURM_JOB_NODELIST": "gpu[07-09,12]",
    "SLURM_LAUNCH_NODE_IPADDR": "10.0.0.9",
}
MPIRUN = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
}


def test_a_process_that_nobody_launched_is_no_rank() -> None:
    assert detect({"PATH": "/bin", "MASTER_ADDR": "node0", "WORLD_SIZE": "4"}) is None


def test_torchrun() -> None:
    assert detect(TORCHRUN) == RankInfo(5, 8, 1, 4, "1", "node0", 29400, "torchrun")


def test_torchrun_under_srun_wins_over_slurm() -> None:
    info = detect(SRUN | TORCHRUN)
    assert info is not None
    assert (info.rank, info.source) == (5, "torchrun")


def test_one_node_holds_all_ranks_or_may_not() -> None:
    here = detect(TORCHRUN | {"LOCAL_WORLD_SIZE": "8", "LOCAL_RANK": "5"})
    assert here is not None
    assert not here.spans_nodes
    unknown = detect({k: v for k, v in TORCHRUN.items() if k != "LOCAL_WORLD_SIZE"})
    assert unknown is not None
    assert unknown.spans_nodes


@pytest.mark.parametrize("missing", ["RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"])
def test_an_incomplete_environment_names_what_is_missing(missing: str) -> None:
    env = {name: value for name, value in TORCHRUN.items() if name != missing}
    with pytest.raises(UsageError, match=f"not {missing}. Set all of them, or unset") as caught:
        detect(env)
    assert caught.value.exit_code == 2


def test_a_master_is_not_asked_for_where_none_is_needed() -> None:
    info = detect({"RANK": "0", "WORLD_SIZE": "2"}, need_master=False)
    assert info is not None
    assert (info.master_addr, info.master_port) == (None, None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"RANK": "8"}, "RANK=8 contradicts WORLD_SIZE=8; ranks count from 0"),
        ({"RANK": "-1"}, "RANK='-1' is not a number from 0 up"),
        ({"RANK": "two"}, "RANK='two' is not a number from 0 up"),
        ({"WORLD_SIZE": ""}, "WORLD_SIZE='' is not a number from 0 up"),
        ({"LOCAL_RANK": "4"}, "LOCAL_RANK=4 contradicts LOCAL_WORLD_SIZE=4; ranks count from 0"),
        ({"LOCAL_WORLD_SIZE": "9"}, "LOCAL_WORLD_SIZE=9 contradicts WORLD_SIZE=8"),
        ({"MASTER_PORT": "70000"}, "MASTER_PORT=70000 is not a port; write a number below 65536"),
        ({"MASTER_ADDR": " "}, "MASTER_ADDR is empty; it must name the host of rank 0"),
    ],
)
def test_a_wrong_value_is_named(change: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        detect(TORCHRUN | change)
    assert str(caught.value) == message


def test_srun_meets_on_the_first_host_at_a_port_made_from_the_job() -> None:
    first, other = detect(SRUN), detect(SRUN | {"SLURM_JOB_ID": "1235"})
    assert first is not None
    assert other is not None
    assert first == RankInfo(3, 8, 1, None, "1", "gpu07", first.master_port, "slurm")
    assert first.master_port is not None
    assert 1024 < first.master_port < 32768
    assert first.master_port != other.master_port


def test_srun_on_one_node_meets_on_loopback() -> None:
    info = detect(SRUN | {"SLURM_STEP_NUM_NODES": "1"})
    assert info is not None
    assert (info.master_addr, info.local_world_size) == ("127.0.0.1", 8)


def test_srun_without_a_node_list_meets_where_srun_was_typed() -> None:
    info = detect({k: v for k, v in SRUN.items() if k != "SLURM_JOB_NODELIST"})
    assert info is not None
    assert info.master_addr == "10.0.0.9"


def test_srun_with_a_master_of_the_users_choice() -> None:
    info = detect(SRUN | {"MASTER_ADDR": "head", "MASTER_PORT": "4000"})
    assert info is not None
    assert (info.master_addr, info.master_port) == ("head", 4000)


def test_the_steps_own_number_of_tasks_wins_over_the_jobs() -> None:
    info = detect(SRUN | {"SLURM_STEP_NUM_TASKS": "4"})
    assert info is not None
    assert info.world_size == 4


@pytest.mark.parametrize(
    "shell",
    [
        {"SLURM_STEP_ID": "4294967290"},
        {"SLURM_PTY_PORT": "40000"},
        {"SLURM_STEP_NUM_TASKS": "1"},
    ],
    ids=["interactive step of salloc", "srun --pty", "a single task"],
)
def test_a_shell_in_an_allocation_is_no_rank(shell: dict[str, str]) -> None:
    assert detect(SRUN | {"SLURM_PROCID": "0"} | shell) is None


def test_a_batch_script_is_no_rank() -> None:
    batch = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_LOCALID": "0"}
    assert detect(batch) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"SLURM_PROCID": "8"}, "SLURM_PROCID=8 contradicts SLURM_NTASKS=8; ranks count from 0"),
        ({"SLURM_NTASKS": "many"}, "SLURM_NTASKS='many' is not a number from 0 up"),
        ({"WORLD_SIZE": "4"}, "WORLD_SIZE=4 contradicts SLURM_NTASKS=8; unset WORLD_SIZE"),
        (
            {"SLURM_JOB_NODELIST": "gpu[", "SLURM_LAUNCH_NODE_IPADDR": ""},
            "no host can be read from the node list 'gpu['; set MASTER_ADDR",
        ),
    ],
)
def test_a_wrong_value_of_slurm_is_named(change: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        detect(SRUN | change)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("nodelist", "host"),
    [
        ("node3", "node3"),
        ("node3,node4", "node3"),
        ("gpu[07-09,12],login", "gpu07"),
        ("rack[2,4]n[010-020]", "rack2n010"),
        ("gpu[5]-ib", "gpu5-ib"),
        ("tux-a,tux[1-3]", "tux-a"),
        ("a.b.example", "a.b.example"),
    ],
)
def test_first_host(nodelist: str, host: str) -> None:
    assert first_host(nodelist) == host


def test_open_mpi_on_one_node() -> None:
    info = detect(MPIRUN)
    assert info == RankInfo(1, 4, 1, 4, "", "127.0.0.1", 29500, "mpi")
    two = [detect(MPIRUN | {"PMIX_NAMESPACE": f"prte-{job}@1"}) for job in (1, 2)]
    assert two[0] is not None
    assert two[1] is not None
    assert two[0].master_port != two[1].master_port


def test_open_mpi_on_many_nodes_asks_for_a_master() -> None:
    spread = MPIRUN | {"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    with pytest.raises(UsageError, match="mpirun -x MASTER_ADDR=<host of rank 0> -x MASTER_PORT"):
        detect(spread)
    info = detect(spread | {"MASTER_ADDR": "n0", "MASTER_PORT": "5000"})
    assert info == RankInfo(1, 4, 1, 2, "", "n0", 5000, "mpi")


def test_mpich() -> None:
    env = {"PMI_RANK": "2", "PMI_SIZE": "3", "MPI_LOCALRANKID": "2", "MPI_LOCALNRANKS": "3"}
    assert detect(env) == RankInfo(2, 3, 2, 3, "", "127.0.0.1", 29500, "mpi")
    with pytest.raises(UsageError, match="PMI_RANK set, but not PMI_SIZE"):
        detect({"PMI_RANK": "2"})
