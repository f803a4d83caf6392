# S43: Two irecvs into overlapping buffers
# Source: CorrBench ArgMismatch-MPIIrecv-buffer-overlap
# world: 2
# expect: CL231 @ 11
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        send(x, dst=1)
        send(x, dst=1)
    else:
        one = async recv(x, src=0)
        two = async recv(x, src=0)
        wait(one)
        wait(two)
