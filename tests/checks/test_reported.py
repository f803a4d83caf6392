"""Verdicts and advice that were once wrong, each as it was met."""

from __future__ import annotations

import commlang
from commlang.checks import check_program
from commlang.checks.selection import Selection
from commlang.transports import RENDEZVOUS, Backend, NcclInit, Target


def found(text: str, world: int = 4, pattern: str = "f", target: Target = RENDEZVOUS) -> list[str]:
    program = commlang.loads(text, pattern).program(world)
    return [d.code for d in check_program(program, target)]


def hint(text: str, world: int = 4, target: Target = RENDEZVOUS) -> str:
    diagnostics = check_program(commlang.loads(text, "f").program(world), target)
    assert diagnostics[0].help
    return diagnostics[0].help


def test_a_mean_over_groups_of_one_size_is_no_uneven_division() -> None:
    text = """
pattern mean(x: float32[n], n = 8):
    all_reduce(x)
    scale(x, 1 / world)

pattern f(x: float32[n], n = 8):
    mesh outer = world // 2, inner = 2
    ensure x == avg(old(x) @ r for r in inner)
    mean(x, group=inner)
"""
    assert found(text) == []


CROSSED = """
pattern f(x: float32[n], y: float32[n], n = 8):
{ensure}    if rank % 2 == 0:
        all_reduce(x)
        all_reduce(y)
    else:
        all_reduce(y)
        all_reduce(x)
"""
MEANT = """\
    ensure x == sum(old(x) @ r if r % 2 == rank % 2 else old(y) @ r for r in ranks)
    ensure y == sum(old(y) @ r if r % 2 == rank % 2 else old(x) @ r for r in ranks)
"""


def test_buffers_that_cross_as_a_contract_says_are_meant_to() -> None:
    assert found(CROSSED.format(ensure="")) == ["CL217"]
    assert found(CROSSED.format(ensure=MEANT)) == []
    wrong = "    ensure x == sum(old(x) @ r for r in ranks)\n"
    assert found(CROSSED.format(ensure=wrong))[:1] == ["CL217"]


def test_a_sequence_in_a_block_is_what_keeps_it_from_being_a_batch() -> None:
    text = """
pattern f(x: float32[n], y: float32[n], n = 8):
    parallel:
        sequence:
            send(x, dst=ranks.next)
            compute(1ms, "pack")
        recv(y, src=ranks.prev)
"""
    eager = Target(Backend.NCCL, NcclInit.EAGER)
    assert found(text, target=eager) == ["CL250"]
    assert hint(text, target=eager).startswith("move each `sequence:` out of the `parallel:`")


def test_no_block_is_advised_for_a_send_of_what_was_just_received() -> None:
    text = """
pattern f(x: float32[n], y: float32[n], n = 8):
    recv(y, src=ranks.prev)
    y -> x, op=sum
    send(x, dst=ranks.next)
"""
    assert found(text) == ["CL201"]
    assert hint(text).endswith("let one rank of the ring send first")


def test_advice_for_one_branch_says_that_others_need_it_too() -> None:
    text = """
pattern f(x: float32[n], y: float32[n], n = 8):
    if rank % 2 == 0:
        send(x, dst=ranks.next)
        recv(y, src=ranks.prev)
    else:
        send(x, dst=ranks.next)
        recv(y, src=ranks.prev)
"""
    assert hint(text).endswith("and so on the other ranks")


def test_collectives_on_the_same_data_are_not_to_be_one() -> None:
    text = "pattern f(x: float32[8], y: float32[5, 8]):\n"
    same = text + "".join("    all_reduce(x)\n" for _ in range(5))
    other = text + "".join(f"    all_reduce(y[{i}])\n" for i in range(5))
    advice = Selection(select=("CL401",), ignore=())
    for body, codes in ((same, []), (other, ["CL401"])):
        program = commlang.loads(body, "f").program(2)
        assert [d.code for d in check_program(program, RENDEZVOUS, advice)] == codes
