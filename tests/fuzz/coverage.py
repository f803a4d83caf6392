"""Fuzzes the front end guided by coverage, with atheris (which is no dependency of the project):

    pip install atheris
    python -m tests.fuzz.coverage -max_total_time=600 [CORPUS FOLDER]

Starts from the library and the corpus. Stops at the first input that makes the front end fail, and
writes it to `crash-…` here; all other options are libFuzzer's.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

atheris: Any = importlib.import_module("atheris")

with atheris.instrument_imports(include=["commlang"]):
    from tests.fuzz.inputs import FILES
    from tests.fuzz.target import swallow


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, text in enumerate(FILES):
            (Path(folder) / str(number)).write_text(text)
        options = ["-max_len=4000", "-timeout=60", "-rss_limit_mb=2048"]
        atheris.Setup([sys.argv[0], *options, *sys.argv[1:], folder], swallow)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
