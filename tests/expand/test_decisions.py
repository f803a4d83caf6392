"""One test for each decision of the language, each also compared with the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlang.errors import PatternError
from commlang.program import build
from tests.expand.conftest import definition_of, rows

if TYPE_CHECKING:
    from tests.expand.conftest import Checked


def refused(text: str, world: int = 4) -> str:
    """The code of the fault that a text has."""
    with pytest.raises(PatternError) as error:
        build(definition_of(text), world)
    return error.value.diagnostics[0].code


def test_01_a_pattern_runs_on_a_group_and_knows_only_that(checked: Checked) -> None:
    program = checked(
        """
        pattern inner(x: float32[n], n = 4):
            if rank == 1:
                send(x[0:world], dst=ranks.next)
            if rank == 0:
                recv(x[0:world], src=ranks.prev)
        pattern main(x: float32[n], n = 8):
            group odd = ranks[1::2]
            if rank in odd:
                inner(x, group=odd)
        """,
        5,
    )
    assert [rows(program, r) for r in range(5)] == [
        [],
        ["recv<-3 x[0:2]"],
        [],
        ["send->1 x[0:2]"],
        [],
    ]


def test_01_patterns_recurse_on_smaller_groups(checked: Checked) -> None:
    program = checked(
        """
        pattern main(x: float32[n], n = 8):
            if world > 1:
                let half = world // 2
                group side = [r for r in ranks if (r < half) == (rank < half)]
                all_reduce(x[0:world])
                main(x, group=side)
        """,
        5,
    )
    assert rows(program, 0) == ["all_reduce x[0:5]", "all_reduce x[0:2]"]
    assert rows(program, 4) == ["all_reduce x[0:5]", "all_reduce x[0:3]", "all_reduce x[0:2]"]


def test_02_src_and_dst_are_ranks_of_the_pattern_also_with_group(checked: Checked) -> None:
    program = checked(
        """
        group evens = ranks[0::2]
        if rank in evens:
            broadcast(x, src=2, group=evens)
            broadcast(x, group_src=2, group=evens)
        """,
        6,
    )
    assert rows(program, 0) == ["broadcast->2 x[0:24]", "broadcast->4 x[0:24]"]


def test_02_groups_are_sequences_that_wrap_at_next_and_prev(checked: Checked) -> None:
    program = checked(
        """
        group g = [3, 0, 2]
        if rank in g:
            fill(x[g.index], g[-1])
            send(y[g.size], dst=g.next)
            recv(y[g.size], src=g.prev)
        """
    )
    assert rows(program, 2) == ["fill x[2:3]", "send->3 y[3:4]", "recv<-0 y[3:4]"]
    assert rows(program, 1) == []


def test_02_a_call_on_a_group_by_a_rank_outside_is_refused() -> None:
    assert refused("group g = [0, 1]\nall_reduce(x, group=g)") == "CL118"


def test_02_members_must_name_the_same_group_also_in_loops() -> None:
    line = "group g = [(rank + i) % world for i in range(2)]"
    assert refused(line) == "CL122"
    assert refused(f"for k in range(3):\n    {line}") == "CL122"


def test_03_a_mesh_names_axes_the_last_fastest(checked: Checked) -> None:
    program = checked(
        """
        mesh pp = 2, dp = 3
        fill(x[pp.index], 0)
        fill(x[dp.index], 0)
        broadcast(x, src=pp[0], group=pp)
        """,
        6,
    )
    assert rows(program, 4) == ["fill x[1:2]", "fill x[1:2]", "broadcast->1 x[0:24]"]
    assert refused("mesh a = 3") == "CL123"


def test_04_at_is_evaluated_as_that_rank_evaluates_it(checked: Checked) -> None:
    program = checked("let mine = x[rank]\nmine @ 1 -> y[rank:rank + 1][0] @ 3")
    assert [rows(program, r) for r in (1, 3)] == [["send->3 x[1:2]"], ["recv<-1 y[3:4]"]]


def test_06_one_arrow_copies_transfers_and_accumulates(checked: Checked) -> None:
    program = checked(
        """
        x[0:4] -> y[4:8]
        x[0:4] -> y[4:8], op=max
        x[0:4] @ 0 -> y[0:4] @ 1, op=sum
        """,
        2,
    )
    assert rows(program, 1) == [
        "copy x[0:4] y[4:8]",
        "accumulate x[0:4] y[4:8]",
        "recv<-0 inbox[0:4]",
        "accumulate inbox[0:4] y[0:4]",
    ]


def test_06_parallel_accumulations_follow_the_block_in_child_order(checked: Checked) -> None:
    program = checked(
        """
        parallel:
            for r in ranks:
                if r > 0:
                    x[0:2] @ r -> y[r:r + 2] @ 0, op=sum
            sequence:
                if rank == 0:
                    recv(x[0], src=1, tag=1)
        """,
        3,
    )
    assert rows(program, 0) == [
        "recv<-1 inbox[0:2]",
        "recv<-2 inbox[0:2]",
        "recv<-1 x[0:1]",
        "accumulate inbox[0:2] y[1:3]",
        "accumulate inbox[0:2] y[2:4]",
    ]


def test_07_chunks_are_always_k_and_differ_by_at_most_one(checked: Checked) -> None:
    program = checked(
        """
        let c = x[0:7].chunks(4)
        for v in c:
            fill(v, share(7, 4, rank))
        fill(c[1:3], 0)
        fill(y[0:2].chunks(4)[3], 0)
        """,
        1,
    )
    assert rows(program, 0) == [
        "fill x[0:2]",
        "fill x[2:4]",
        "fill x[4:6]",
        "fill x[6:7]",
        "fill x[2:6]",
        "fill y[]",
    ]


def test_07_communication_needs_contiguous_views(checked: Checked) -> None:
    checked("fill(x.reshape(4, 6).transpose(0, 1)[2], 1)")
    assert refused("all_reduce(x[0:24:2])") == "CL119"
    assert refused("let v = x.reshape(4, 6)[:, 0:2]\nfill(v.flatten(), 1)") == "CL111"


def test_07_an_empty_view_is_contiguous_whatever_its_strides(checked: Checked) -> None:
    program = checked("all_reduce(x.reshape(4, 6).chunks(7, dim=1)[6].flatten())")
    assert rows(program, 0) == ["all_reduce x[]"]


def test_08_a_temp_is_new_at_each_entry_of_its_block(checked: Checked) -> None:
    program = checked("for i in range(3):\n    temp t: float32[i + 1]\n    fill(t, i)", 1)
    assert rows(program, 0) == ["fill t[0:1]", "fill t[0:2]", "fill t[0:3]"]
    assert len(set(program.operands.buffer.tolist())) == 3
    assert {program.buffer_of(b).storage for b in program.operands.buffer.tolist()} == {
        program.buffers[-1].storage
    }


def test_09_parallel_flattens_for_if_and_let_but_not_sequence(checked: Checked) -> None:
    program = checked(
        """
        parallel:
            for i in range(2):
                if rank == 0:
                    let v = x[i]
                    send(v, dst=1)
            sequence:
                barrier()
                parallel:
                    all_reduce(x)
        """,
        2,
    )
    nests = program.nest[:4].tolist()
    assert nests[0] == nests[1]
    assert len(set(nests)) == 3
    assert program.nests.sequence.tolist() == [True, False]


def test_09_messages_on_one_channel_match_in_program_order(checked: Checked) -> None:
    program = checked(
        """
        parallel for i in range(3):
            x[i] @ 0 -> y[2 - i] @ 1
        """,
        2,
    )
    assert rows(program, 1) == ["recv<-0 y[2:3]", "recv<-0 y[1:2]", "recv<-0 y[0:1]"]


def test_10_a_wait_joins_one_handle_or_all_of_a_name(checked: Checked) -> None:
    program = checked(
        """
        for i in range(3):
            h[i, 1] = async all_reduce(x[i])
        wait(h[1, 1])
        wait(h)
        wait(h)
        g = async barrier()
        wait(g)
        """,
        2,
    )
    assert program.wait[:8].tolist() == [4, 3, 4, -1, -1, -1, 7, -1]


def test_10_handles_belong_to_one_call_of_a_pattern(checked: Checked) -> None:
    program = checked(
        """
        pattern inner(x: float32[n], n = 4):
            h = async all_reduce(x)
            wait(h)
        pattern main(x: float32[n], n = 4):
            h = async barrier()
            for i in range(2):
                inner(x)
            wait(h)
        """,
        1,
    )
    assert program.wait.tolist() == [5, 2, -1, 4, -1, -1]


def test_11_bounds_shapes_and_lists_may_vary_by_rank(checked: Checked) -> None:
    program = checked(
        """
        temp t: float32[rank + 1]
        for i in range(rank):
            fill(t[i], i)
        for j in [v for v in range(4) if v > rank]:
            fill(x[j], j)
        for k in ([5, 6] if rank == 0 else range(rank)):
            fill(y[k], k)
        let rows = [[1, 2], [3], [4, 5, 6], []]
        for m in rows[rank]:
            fill(x[m], sum(rows[rank]))
        """
    )
    assert rows(program, 0) == [
        "fill x[1:2]", "fill x[2:3]", "fill x[3:4]", "fill y[5:6]", "fill y[6:7]",
        "fill x[1:2]", "fill x[2:3]",
    ]  # fmt: skip
    assert rows(program, 3)[:3] == ["fill t[0:1]", "fill t[1:2]", "fill t[2:3]"]


def test_11_only_live_lanes_are_evaluated(checked: Checked) -> None:
    program = checked(
        """
        if rank > 0 and 12 // rank == 4:
            fill(x[0], 12 % rank if rank > 0 else 0)
        if rank == 0 or x[24 - rank].numel == 1:
            fill(y[0], 6 // rank if rank > 0 else 1)
        """
    )
    assert [len(rows(program, r)) for r in range(4)] == [1, 1, 1, 2]


def test_11_parameters_and_tables_are_the_same_on_all_ranks() -> None:
    inner = "pattern inner(x: float32[n], k, n = 4):\n    fill(x, k)\n"
    body = "pattern main(x: float32[n], n = 4):\n    inner(x, k=rank)\n"
    assert refused(inner + body) == "CL126"


def test_11_a_size_derived_from_a_table_may_vary(checked: Checked) -> None:
    program = checked(
        """
        pattern main(x: float32[sum(counts[rank, d] for d in ranks)], counts: int[w, w]):
            fill(x, w)
        """,
        2,
        {"counts": [[1, 2], [3, 4]]},
    )
    assert [rows(program, r) for r in range(2)] == [["fill x[0:3]"], ["fill x[0:7]"]]


def test_11_a_table_has_its_declared_shape() -> None:
    head = "pattern main(x: float32[n], t: int[world, world] = [[1, 2], [3, 4]], n = 4):\n"
    build(definition_of(head + "    fill(x, t[0, 1])\n"), 2)
    assert refused(head + "    fill(x, t[0, 1])\n", 3) == "CL112"


def test_12_shapes_bind_integers_and_defaults_apply_only_to_what_is_allocated(
    checked: Checked,
) -> None:
    program = checked(
        """
        pattern inner(x: float32[m, k], m = 100, k = 100):
            fill(x[m - 1, k - 1], 0)
        pattern main(x: float32[n], n = 6):
            inner(x.reshape(2, 3))
        """,
        1,
    )
    assert rows(program, 0) == ["fill x[5:6]"]


def test_13_externs_and_computations_say_what_they_read_and_write(checked: Checked) -> None:
    program = checked(
        """
        extern f(a: read float32[k], b: update float32[k], c: write float32[k], s: int):
            cost 1ms
        pattern main(x: float32[n], n = 6):
            f(x[0:2], x[2:4], x[4:6], rank)
            compute(2ms, "mlp", reads=x, writes=[x[0:1]])
            compute(matmul=[n, 2, rank])
        """,
        2,
    )
    operands = [int(program.first[row]) + i for row in (0, 1) for i in range(program.count[row])]
    assert program.operands.access[operands].tolist() == [0, 2, 1, 0, 1]  # read, write, update
    assert program.arguments_of(2)["matmul"] == (6, 2, 0)


def test_15_a_computed_negative_index_is_refused_a_literal_one_counts_from_the_end(
    checked: Checked,
) -> None:
    assert rows(checked("fill(x[-1], 0)\nfill(x[-3:], 0)", 1), 0) == [
        "fill x[23:24]",
        "fill x[21:24]",
    ]
    assert refused("fill(x[0 - 1], 0)") == "CL111"
    assert refused("fill(x[rank - 1], 0)") == "CL111"


def test_15_expressions_mean_what_they_mean_in_python(checked: Checked) -> None:
    program = checked(
        """
        let f(a, b) = a ** 2 - b // 3 % 4
        let s = 6 / 2 + (1 << 3) - (255 >> 4) + (6 & 3 | 8 ^ 1) + ~0 + -7 // 2
        let l = reversed([a * 10 + b for a in range(3) if a != 1 for b in range(rank + 1)])
        for i, (v) in enumerate(l, 1):
            compute(matmul=[f(i, v), s, log2ceil(v + 1) + log2(v + 1)])
        for a, b in zip(range(2), [max(1, 2), min(3, 4)]):
            compute(matmul=[a, b, len(l) + abs(0 - 2) + sum(l)])
        """.replace("(v)", "v"),
        3,
    )
    assert program.arguments_of(0)["matmul"] == (-1, 2, 9)


def test_comprehensions_run_their_last_clause_fastest(checked: Checked) -> None:
    program = checked(
        "for v in [10 * a + b for a in range(2) for b in range(3)]:\n    fill(x[v], 0)", 1
    )
    starts = [event.split("[")[1].split(":")[0] for event in rows(program, 0)]
    assert starts == ["0", "1", "2", "10", "11", "12"]


def test_a_comprehension_sees_the_outer_name_that_it_shadows(checked: Checked) -> None:
    text = "for i in range(4):\n    for j in [i for i in range(i)]:\n        fill(x[j], 0)"
    assert len(rows(checked(text, 2), 1)) == 0 + 1 + 2 + 3


def test_loops_run_over_lists_of_ops_fractions_and_lists(checked: Checked) -> None:
    program = checked(
        """
        for o in [sum, max]:
            all_reduce(x, op=o)
        for f in [1/2, 3]:
            scale(x, f)
        for a, b in [[0, 1], [1, 0]]:
            x @ a -> y @ b
        """,
        2,
    )
    assert rows(program, 0)[4:] == ["send->1 x[0:24]", "recv<-1 y[0:24]"]
