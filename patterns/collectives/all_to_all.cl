pattern main(got: dtype[world * n], x: dtype[world * n], n = 256Ki, dtype = float32):
    """all_to_all: every rank sends a different part of its tensor to each rank.

    Part d of rank s becomes part s of rank d, as in the transpose of a matrix that is spread over
    the ranks. The parts stand in two lists, one to receive into and one to send from.
    """
    ensure got.chunks(world)[s] == (old(x) @ s).chunks(world)[rank] for s in ranks

    all_to_all(got.chunks(world), x.chunks(world))
