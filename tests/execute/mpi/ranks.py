"""What the ranks of the tests do: each scenario asserts, through `torch.distributed` or a plan."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.distributed as dist

import commlang
from commlang.schedule import Act

if TYPE_CHECKING:
    from commlang.execute.rank import RankContext

_dist: Any = dist  # torch's collectives have no complete types
COUNT = 5


def play(context: RankContext, names: list[str]) -> list[Any]:
    """Run scenarios in a world that commlang joined."""
    torch.manual_seed(0)
    answers: list[Any] = []
    with context.join(backend="mpi"):
        for number, name in enumerate(names):
            context.position[0] = number
            answers.append(globals()[name](dist.get_rank(), dist.get_world_size()))
            dist.barrier()
    return answers


def of(rank: int, length: int = COUNT, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A tensor that tells ranks and places apart."""
    return (torch.arange(length) + 10 * rank).to(dtype)


def total(ranks: range) -> torch.Tensor:
    """The sum of some ranks' tensors."""
    return torch.stack([of(rank) for rank in ranks]).sum(0)


def async_operations_finish_when_they_are_waited_for(rank: int, size: int) -> None:
    tensors = [of(rank) + shift for shift in range(4)]
    works: list[Any] = [_dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for shift, (work, tensor) in reversed(list(enumerate(zip(works, tensors, strict=True)))):
        assert work.wait()
        assert work.is_completed()
        assert work.is_success()
        assert work.exception() is None
        assert torch.equal(tensor, total(range(size)) + size * shift)
        assert work.result()[0] is tensor


def each_rank_chooses_whether_it_waits(rank: int, size: int) -> None:
    """Rank 0 only starts what the others wait for, and the other way round."""
    everyone = [of(r) for r in range(size)]
    for waits in (rank == 0, rank != 0):
        x, y, z = of(rank), of(rank), of(rank)
        gathered, listed = torch.zeros(size * COUNT), [torch.zeros(COUNT) for _ in range(size)]
        exchanged, share, given = torch.zeros(size), torch.zeros(1), torch.zeros(COUNT)
        collected = [torch.zeros(COUNT) for _ in range(size)] if rank == 1 else None
        parts = everyone if rank == 1 else None
        works = [
            _dist.all_reduce(x, async_op=not waits),
            _dist.broadcast(y, src=1, async_op=not waits),
            _dist.reduce(z, dst=1, async_op=not waits),
            _dist.all_gather_single(gathered, of(rank), async_op=not waits),
            _dist.all_gather(listed, of(rank), async_op=not waits),
            _dist.reduce_scatter_single(share, of(rank, size), async_op=not waits),
            _dist.all_to_all_single(exchanged, of(rank, size), async_op=not waits),
            _dist.gather(of(rank), collected, dst=1, async_op=not waits),
            _dist.scatter(given, parts, src=1, async_op=not waits),
            _dist.barrier(async_op=not waits),
        ]
        for work in works:
            assert (work is None) == waits
            if work is not None:
                work.wait()
        assert torch.equal(x, total(range(size)))
        assert torch.equal(y, of(1))
        assert torch.equal(z, total(range(size)) if rank == 1 else of(rank))
        assert torch.equal(gathered, torch.cat(everyone))
        assert torch.equal(torch.stack(listed), torch.stack(everyone))
        assert share.item() == sum(10 * r + rank for r in range(size))
        assert torch.equal(exchanged, torch.tensor([10.0 * r + rank for r in range(size)]))
        assert collected is None or torch.equal(torch.stack(collected), torch.stack(everyone))
        assert torch.equal(given, of(rank))


def plans_overlap_differently(rank: int, size: int) -> None:
    """Rank 0, which goes on to send, only starts the broadcast that the others wait for."""
    text = """\
pattern main(x: float32[n], n = 4Ki):
    broadcast(x, src=0)
    if rank == 0:
        send(x, dst=1)
    if rank == 1:
        recv(x, src=0)
"""
    plan = commlang.loads(text).plan(world=size)
    with commlang.Executor(plan) as executor:
        assert executor.actions[0].act is (Act.RUN if rank else Act.START)
        for shift in range(3):
            x = of(rank, 4096) + shift
            executor.run(x=x)
            assert torch.equal(x, of(0, 4096) + shift)


def collectives_block_where_all_ranks_wait(rank: int, size: int) -> None:
    """By MPI's blocking ones; not where some rank, here the last, starts one and goes on."""
    text = """\
pattern all_wait(x: float32[n], y: float32[n], n = 8):
    all_reduce(x)
    broadcast(y, src=0)

pattern one_starts(x: float32[n], y: float32[n], n = 8):
    if rank == world - 1:
        work = async all_reduce(x)
        wait(work)
    else:
        all_reduce(x)
    broadcast(y, src=0)
"""
    for name, blocks in (("all_wait", True), ("one_starts", False)):
        plan = commlang.loads(text, name).plan(world=size, schedule="program")
        with commlang.Executor(plan) as executor:
            x, y = torch.full((8,), float(rank)), torch.full((8,), float(rank + 5))
            executor.run(x=x, y=y)
            last: Any = executor.steps[-1]
            assert last.__name__ == ("run_blocking" if blocks else "run")
        assert x.tolist() == [float(sum(range(size)))] * 8
        assert y.tolist() == [5.0] * 8


def a_work_can_be_polled(rank: int, size: int) -> None:
    tensor = of(rank)
    work = _dist.broadcast(tensor, src=1, async_op=True)
    while not work.is_completed():
        pass
    assert torch.equal(tensor, of(1))


def a_future_is_completed_without_being_waited_for(rank: int, size: int) -> None:
    tensor = of(rank)
    work = _dist.all_reduce(tensor, async_op=True)
    seen: list[torch.Tensor] = []
    future = work.get_future().then(lambda done: seen.append(done.value()[0] / size))
    future.wait()
    assert torch.equal(seen[0], total(range(size)) / size)
    assert work.wait()


def a_wait_may_have_a_limit(rank: int, size: int) -> None:
    if rank == 0:
        tensor = torch.zeros(COUNT)
        work = dist.irecv(tensor, src=1, tag=3)
        assert work is not None
        with pytest.raises(dist.DistBackendError, match="recv is not over"):
            work.wait(timedelta(milliseconds=20))
        dist.send(tensor, 1)  # which lets rank 1 send
        work.wait()
        assert torch.equal(tensor, of(1))
    elif rank == 1:
        dist.recv(torch.zeros(COUNT), src=0)
        dist.send(of(1), 0, tag=3)


def a_work_that_nobody_keeps_is_finished(rank: int, size: int) -> None:
    long = 1 << 20  # more than MPI sends before it is received
    outbox, inbox = of(rank, long), torch.zeros(long)
    dist.isend(outbox, (rank + 1) % size)
    del outbox
    other = [torch.zeros(long) for _ in range(4)]  # would take the memory, were it free
    dist.recv(inbox, (rank - 1) % size)
    assert torch.equal(inbox, of((rank - 1) % size, long))
    assert not any(tensor.any() for tensor in other)


def messages_are_told_apart_by_tags(rank: int, size: int) -> None:
    if rank == 0:
        works = [dist.isend(of(0) + tag, 1, tag=tag) for tag in (7, 8)]
        for work in works:
            assert work is not None
            work.wait()
    elif rank == 1:
        for tag in (8, 7):
            tensor = torch.zeros(COUNT)
            assert dist.recv(tensor, 0, tag=tag) == 0
            assert torch.equal(tensor, of(0) + tag)


def a_message_from_anyone_says_from_whom(rank: int, size: int) -> None:
    if rank:
        dist.send(of(rank), 0, tag=5)
        return
    sources: set[int] = set()
    for _ in range(size - 1):
        tensor = torch.zeros(COUNT)
        source = dist.recv(tensor, tag=5)
        assert torch.equal(tensor, of(source))
        sources.add(source)
    assert sources == set(range(1, size))


def a_message_of_another_length_is_an_error(rank: int, size: int) -> None:
    if rank == 0:
        dist.send(of(0, 3), 1)
    elif rank == 1:
        with pytest.raises(RuntimeError, match="rank 0 sent 3 elements where 5 are received"):
            dist.recv(torch.zeros(COUNT), 0)


def batches_meet_in_any_order(rank: int, size: int) -> None:
    after, before = (rank + 1) % size, (rank - 1) % size
    inbox = torch.zeros(COUNT)
    send = dist.P2POp(dist.isend, of(rank), after, tag=2)
    recv = dist.P2POp(dist.irecv, inbox, before, tag=2)
    for work in dist.batch_isend_irecv([send, recv] if rank % 2 else [recv, send]):
        work.wait()
    assert torch.equal(inbox, of(before))


def subgroups_are_made_by_their_members(rank: int, size: int) -> None:
    odd = _dist.new_group(list(range(1, size, 2)))
    backwards = _dist.new_group(list(reversed(range(size))), sort_ranks=False)
    if rank % 2:
        tensor = of(rank)
        _dist.all_reduce(tensor, group=odd)
        assert torch.equal(tensor, total(range(1, size, 2)))
        # No rank but the members takes part in this one.
        alone = _dist.new_group(list(range(1, size, 2)), use_local_synchronization=True)
        _dist.broadcast(tensor, src=1, group=alone)
        _dist.destroy_process_group(alone)
    parts = [torch.zeros(COUNT) for _ in range(size)]
    _dist.all_gather(parts, of(rank), group=backwards)
    assert all(torch.equal(p, of(size - 1 - place)) for place, p in enumerate(parts))
    assert _dist.get_group_rank(backwards, 0) == size - 1


def objects_travel(rank: int, size: int) -> None:
    everyone: list[Any] = [None] * size
    _dist.all_gather_object(everyone, {"rank": rank})
    assert everyone == [{"rank": r} for r in range(size)]
    said = [("from", rank)]
    _dist.broadcast_object_list(said, src=1)
    assert said == [("from", 1)]
    mine: list[Any] = [None]
    _dist.scatter_object_list(mine, [f"for {r}" for r in range(size)] if rank == 0 else None)
    assert mine == [f"for {rank}"]


def lists_may_be_uneven(rank: int, size: int) -> None:
    lengths = [r + 1 for r in range(size)]
    gathered = [torch.zeros(n) for n in lengths]
    _dist.all_gather(gathered, of(rank, lengths[rank]))
    assert all(torch.equal(gathered[r], of(r, n)) for r, n in enumerate(lengths))
    output = torch.zeros(lengths[rank])
    _dist.reduce_scatter(output, [of(r, n) for r, n in enumerate(lengths)])
    assert torch.equal(output, size * of(rank, lengths[rank]))
    received = [torch.zeros(lengths[rank]) for _ in range(size)]
    _dist.all_to_all(received, [of(rank, n) for n in lengths])
    assert all(torch.equal(received[r], of(r, lengths[rank])) for r in range(size))
    whole = torch.zeros(sum(lengths), 2)
    given = of(rank, 2 * size * lengths[rank]).view(-1, 2)
    _dist.all_to_all_single(whole, given, lengths, [lengths[rank]] * size)
    start = 2 * lengths[rank] - 2
    assert torch.equal(whole[:1].view(-1), of(0, 2 * size)[rank * 2 : rank * 2 + 2])
    assert start == 2 * rank


def tensors_need_not_be_contiguous(rank: int, size: int) -> None:
    table = of(rank, 12).view(3, 4).clone()
    _dist.all_reduce(table[:, 1])
    expected = of(rank, 12).view(3, 4).clone()
    expected[:, 1] = sum(of(r, 12).view(3, 4)[:, 1] for r in range(size))
    assert torch.equal(table, expected)
    row = of(rank, 8).view(4, 2).t()
    parts = [torch.zeros(4, 2).t() for _ in range(size)]
    _dist.all_gather(parts, row)
    assert all(torch.equal(parts[r], of(r, 8).view(4, 2).t()) for r in range(size))


def short_floats_are_rounded_once(rank: int, size: int) -> None:
    tensor = torch.tensor([1.0 if rank == 0 else 2.0**-9], dtype=torch.bfloat16)
    _dist.all_reduce(tensor)
    exact = 1 + (size - 1) * 2.0**-9
    assert torch.equal(tensor, torch.tensor([exact]).to(torch.bfloat16))


def empty_tensors_are_no_trouble(rank: int, size: int) -> None:
    _dist.all_reduce(torch.zeros(0))
    _dist.broadcast(torch.zeros(0, 3), src=0)
    _dist.all_to_all_single(torch.zeros(0), torch.zeros(0))


def what_cannot_be_done_is_an_error_on_every_rank(rank: int, size: int) -> None:
    cases = (
        (torch.zeros(2, dtype=torch.float8_e5m2), dist.ReduceOp.SUM, "no SUM of float8_e5m2"),
        (torch.zeros(2), dist.ReduceOp.BAND, "no BAND of float32"),
        (torch.zeros(2, dtype=torch.int32), dist.ReduceOp.AVG, "no AVG of int32"),
        (torch.zeros(2, device="meta"), dist.ReduceOp.SUM, "not torch.strided on meta"),
    )
    for tensor, op, words in cases:
        with pytest.raises(ValueError, match=words):
            _dist.all_reduce(tensor, op)
    # MPI would write past the end.
    with pytest.raises(ValueError, match=f"needs {size * COUNT}, but is given {COUNT}"):
        _dist.all_gather_single(torch.zeros(COUNT), torch.zeros(COUNT))


def a_step_of_ddp_is_that_of_gloo(rank: int, size: int) -> None:
    gradients: list[list[torch.Tensor]] = []
    for backend in ("commlang_mpi", "gloo"):
        group = _dist.new_group(backend=backend)
        torch.manual_seed(3)
        layers = [torch.nn.Linear(30, 40), torch.nn.ReLU(), torch.nn.Linear(40, 7)]
        model = torch.nn.parallel.DistributedDataParallel(
            torch.nn.Sequential(*layers), process_group=group, bucket_cap_mb=0.001
        )
        for step in range(3):
            model.zero_grad()
            x = torch.randn(6, 30, generator=torch.Generator().manual_seed(100 * step + rank))
            model(x).square().mean().backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
        del model
        _dist.destroy_process_group(group)
    mpi, gloo = gradients
    assert len(mpi) == 4
    for ours, theirs in zip(mpi, gloo, strict=True):
        torch.testing.assert_close(ours, theirs)
