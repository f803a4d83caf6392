"""MPI for `torch.distributed`, over mpi4py, and ranks that mpirun starts."""
