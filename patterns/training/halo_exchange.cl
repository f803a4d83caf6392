pattern halo_exchange(
    u: dtype[ny + 2, nx + 2],
    ny = 256,
    nx = 256,
    py = 2,
    px = world // py,
    dtype = float32,
):
    """Halo exchange of a stencil code on a py by px grid of ranks, without wrapping round.

    Each rank owns ny by nx cells and around them keeps a copy of its neighbours' edges. Rows are
    contiguous and travel as they are; columns are packed and unpacked. All messages of a rank are
    under way at once: at most four, of 2 (ny + nx) elements together.
    Source: Gropp, Lusk and Skjellum, Using MPI, 1994 (there called ghost points).
    """
    require world == py * px, "the ranks must fill the grid"
    mesh y = py, x = px
    let north = y.index > 0
    let south = y.index < py - 1
    let west = x.index > 0
    let east = x.index < px - 1

    let cells = u[1 : ny + 1, 1 : nx + 1]
    let above = u[0, 1 : nx + 1]
    let below = u[ny + 1, 1 : nx + 1]
    let left = u[1 : ny + 1, 0]
    let right = u[1 : ny + 1, nx + 1]
    let corners = u[:: ny + 1, :: nx + 1]

    ensure cells == old(cells)
    ensure above == (old(cells)[ny - 1] @ y.prev if north else old(above))
    ensure below == (old(cells)[0] @ y.next if south else old(below))
    ensure left == (old(cells)[:, nx - 1] @ x.prev if west else old(left))
    ensure right == (old(cells)[:, 0] @ x.next if east else old(right))
    ensure corners == old(corners)
    preset cluster: world = 64, py = 8, ny = 8Ki, nx = 8Ki

    temp edge: dtype[2, ny]
    temp halo: like edge
    cells[:, 0] -> edge[0]
    cells[:, nx - 1] -> edge[1]

    parallel:
        if north:
            send(cells[0], dst=y.prev)
            recv(above, src=y.prev)
        if south:
            send(cells[ny - 1], dst=y.next)
            recv(below, src=y.next)
        if west:
            send(edge[0], dst=x.prev)
            recv(halo[0], src=x.prev)
        if east:
            send(edge[1], dst=x.next)
            recv(halo[1], src=x.next)

    if west:
        halo[0] -> left
    if east:
        halo[1] -> right
