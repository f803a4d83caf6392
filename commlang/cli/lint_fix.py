"""`commlang lint --fix` and `--diff`: mend the findings that carry a fix."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from commlang.cli.files import expand_folders
from commlang.cli.guard import say
from commlang.cli.rewrite import as_before, replace_file, show_diff
from commlang.errors import UsageError

if TYPE_CHECKING:
    from commlang.verify import Options


def fix_all(paths: tuple[str, ...], options: Options, *, dry: bool) -> tuple[bool, bool]:
    """Mend the files, or show how; whether one could not be read, and whether one changes.

    Raises UsageError for what is no file of the user's: standard input, and names of the library.
    """
    from commlang.verify import locate_source, split_target
    from commlang.verify.fix import mend

    for path in () if dry else paths:
        file, _ = split_target(path)
        if not os.path.lexists(file):
            raise UsageError(f"--fix cannot write {file}; give a file, or --diff")
    failed: list[UsageError] = []
    changed = 0

    def fail(error: UsageError) -> None:
        failed.append(error)
        if dry:  # else the check that follows says the same
            say(f"error: {error}")

    for path in expand_folders(paths, fail):
        file, pattern = split_target(path)
        try:
            source = locate_source(file)
            mended = mend(source, pattern, options)
        except UsageError as error:
            fail(error)
            continue
        if not mended.findings:
            continue
        changed += 1
        if dry:
            show_diff(source, mended.text, "fixed", same=False)
            continue
        replace_file(source.path, as_before(source.path, mended.text))
        codes = ", ".join(dict.fromkeys(found.code for found in mended.findings))
        many = len(mended.findings)
        say(f"fixed {many} finding{'s' * (many > 1)} in {source.path} ({codes})")
    return bool(failed), bool(changed)
