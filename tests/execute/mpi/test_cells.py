"""Every operation on every dtype by every op: right values, or refused as the table says."""

from __future__ import annotations

import pytest

from benchmarks.gloo_support import LOCAL, cells, tabled
from benchmarks.mpi_support import measure


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore:ComplexHalf support")
def test_the_table_says_what_mpi_does() -> None:
    chosen = [cell for cell in cells() if cell.split("/")[0] not in LOCAL]
    assert len(chosen) > 1000
    told = {cell: said.split(":")[0] for cell, said in measure(chosen, 3).items()}
    assert told == {cell: "yes" if tabled(cell, "mpi") else "refused" for cell in chosen}
