pattern halo_exchange(
    u: float32[ny + 2, nx + 2], ny = 256, nx = 256, py = 2, px = world // py
):
    """Halo exchange of a stencil code on a py by px grid of ranks, without wrapping round.

    Each rank owns ny by nx cells and around them keeps a copy of its neighbours' edges. Rows are
    contiguous and travel as they are; columns are packed and unpacked. All messages of a rank are
    under way at once.
    """
    require world == py * px, "the ranks must fill the grid"
    mesh y = py, x = px
    let north = y.index > 0
    let south = y.index < py - 1
    let west = x.index > 0
    let east = x.index < px - 1
    ensure u[0, 1:nx + 1] == old(u)[ny, 1:nx + 1] @ y.prev if north else true
    ensure u[ny + 1, 1:nx + 1] == old(u)[1, 1:nx + 1] @ y.next if south else true
    ensure u[1:ny + 1, 0] == old(u)[1:ny + 1, nx] @ x.prev if west else true
    ensure u[1:ny + 1, nx + 1] == old(u)[1:ny + 1, 1] @ x.next if east else true
    ensure u[1:ny + 1, 1:nx + 1] == old(u)[1:ny + 1, 1:nx + 1]
    preset cluster: world = 64, py = 8, ny = 8Ki, nx = 8Ki

    temp edge: float32[2, ny]
    temp halo: float32[2, ny]
    u[1:ny + 1, 1] -> edge[0]
    u[1:ny + 1, nx] -> edge[1]

    parallel:
        if north:
            send(u[1, 1:nx + 1], dst=y.prev)
            recv(u[0, 1:nx + 1], src=y.prev)
        if south:
            send(u[ny, 1:nx + 1], dst=y.next)
            recv(u[ny + 1, 1:nx + 1], src=y.next)
        if west:
            send(edge[0], dst=x.prev)
            recv(halo[0], src=x.prev)
        if east:
            send(edge[1], dst=x.next)
            recv(halo[1], src=x.next)

    if west:
        halo[0] -> u[1:ny + 1, 0]
    if east:
        halo[1] -> u[1:ny + 1, nx + 1]
