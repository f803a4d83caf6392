"""`python -m commlang`: the command line from a checkout that is not installed."""

from __future__ import annotations

import sys

from commlang.cli import main

if __name__ == "__main__":
    sys.exit(main())
