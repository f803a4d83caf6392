pattern main(y: float32[n], x: float32[n], n = 1Mi):
    """parallel: every rank sends x to the next rank and receives its previous one's, at once.

    In torch this is batch_isend_irecv. Without `parallel:`, every rank would wait in its send for
    a receive that nobody reaches: a deadlock, and commlang would show the ring of ranks.
    """
    require world >= 2, "a rank cannot send to itself"
    ensure y == old(x) @ ranks.prev

    parallel:
        send(x, dst=ranks.next)
        recv(y, src=ranks.prev)
