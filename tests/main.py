"""A script as the main program, in a process that is there already (`tests.warm`)."""

from __future__ import annotations

import runpy
import sys


def main(argv: list[str]) -> int:
    sys.argv = argv
    runpy.run_path(argv[0], run_name="__main__")
    return 0
