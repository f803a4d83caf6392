"""Write the serialised parser table: `python -m commlang.syntax.table` after a grammar change."""

from __future__ import annotations

from commlang import resources
from commlang.syntax.parser import build_table


def main() -> None:
    """Build the table from the grammar and store it beside it."""
    path = resources.parser_table_path()
    path.write_bytes(build_table())
    print(f"wrote {path} ({path.stat().st_size} bytes)")


if __name__ == "__main__":
    main()
