"""DR9: general practice, of which a probe of the machine can say nothing."""

from __future__ import annotations

from commlang.doctor import sources
from commlang.doctor.advice import Advice, Severity


def _practice(code: str, fact: str, why: str, todo: str, source: str) -> Advice:
    return Advice(code, Severity.ADVICE, fact, why, todo, source)


GENERAL = (
    _practice(
        "DR901",
        "InfiniBand or RoCE between nodes",
        "NCCL moves data between GPUs of two hosts by it without a copy in the hosts' memory",
        "look at `NCCL_DEBUG=INFO` once: `NET/IB` and `GDRDMA` should be in it, not `NET/Socket`",
        sources.BACKENDS,
    ),
    _practice(
        "DR902",
        "few large tensors instead of many small ones",
        "each call costs some µs on the host and on the link, whatever it moves",
        "concatenate, coalesce, or let commlang do it: CL401 of `commlang lint --advice` finds it",
        sources.DDP,
    ),
    _practice(
        "DR903",
        "DDP's bucket_cap_mb (25 MiB)",
        "larger buckets use a link better, smaller ones start earlier and overlap more",
        "measure 10 to 100 MiB; on few fast links larger ones pay",
        sources.DDP,
    ),
    _practice(
        "DR904",
        "DDP(gradient_as_bucket_view=True)",
        "gradients then are parts of the buckets: no copy, and less memory by all gradients' size",
        "set it, unless something calls detach_() on gradients",
        sources.DDP,
    ),
    _practice(
        "DR905",
        "torch.backends.cudnn.benchmark = True",
        "cuDNN then measures its algorithms for each shape of a convolution once",
        "set it where shapes are fixed; where they change with each batch it costs time",
        sources.CUDNN,
    ),
    _practice(
        "DR906",
        "new_group(timeout=…)",
        "it does not inherit that of init_process_group, but takes the backend's default",
        "give it to each new_group",
        sources.GROUPS,
    ),
    _practice(
        "DR907",
        "init_process_group(device_id=…)",
        "NCCL then makes its communicators at once, and that of a group by splitting",
        "give it on GPUs; the first operation costs less, and hangs of first use go away",
        sources.DISTRIBUTED,
    ),
)
