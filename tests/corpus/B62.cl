# B62: Uneven exchange where one rank sends nothing.
# Source: https://github.com/pytorch/pytorch/issues/146468
# world: 2
# expect: clean
pattern main(x: float32[n], y: float32[n], z: float32[n], n = 8):
    if rank == 0:
        all_to_all_single(y[0:1], x[0:2], input_split_sizes=[1, 1], output_split_sizes=[1, 0])
    else:
        all_to_all_single(y[0:1], x[0:0], input_split_sizes=[0, 0], output_split_sizes=[1, 0])
