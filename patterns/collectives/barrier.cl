pattern main():
    """barrier: no rank goes on before all have arrived. It moves no data.

    Here nobody reads the checkpoint before rank 0 has written it. Where data is exchanged anyway,
    no barrier is needed: whoever receives has waited.
    """
    if rank == 0:
        compute(5ms, "write the checkpoint")
    barrier()
    compute(5ms, "read the checkpoint")
