"""torch's key-value stores under names that count as public, which torch's typing denies them."""

from __future__ import annotations

from typing import Any, cast

import torch.distributed as dist

FileStore = dist.FileStore  # pyright: ignore[reportPrivateImportUsage]
HashStore = dist.HashStore  # pyright: ignore[reportPrivateImportUsage]
PrefixStore = dist.PrefixStore  # pyright: ignore[reportPrivateImportUsage]
Store = dist.Store  # pyright: ignore[reportPrivateImportUsage]
TCPStore = dist.TCPStore  # pyright: ignore[reportPrivateImportUsage]


def own_connection(store: Store) -> Store:
    """A second connection to `store`, which a blocking call on the first does not hold up."""
    return cast("Any", store).clone()
