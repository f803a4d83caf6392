pattern parameter_server(weights: float32[n], grad: float32[n], n = 1Mi):
    """One round of a synchronous parameter server: rank 0 serves, the others train.

    The workers push their gradients, the server adds them to the weights, the workers pull the
    result. A worker sends and receives n elements, the server world - 1 times as many: all pass
    through one rank, which is why all-reduce took over.
    Source: Li and others, Scaling distributed machine learning with the parameter server,
    OSDI 2014.
    """
    require world >= 2, "a server needs a worker"
    ensure weights == (old(weights) @ 0) + sum(old(grad) @ r for r in ranks[1:])
    ensure grad == old(grad)

    parallel for r in ranks[1:]:
        grad @ r -> weights @ 0, op=sum
    parallel for r in ranks[1:]:
        weights @ 0 -> weights @ r
