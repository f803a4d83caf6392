"""An installed wheel, an editable install and a bare checkout behave alike."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path

import pytest

from commlang.version import __version__

ROOT = Path(__file__).parents[1]
CLEAN = """\
pattern mean(x: float32[n], n = 8):
    ensure x == avg(old(x) @ r for r in ranks)

    all_reduce(x, op=avg)
"""
FAULTY = """\
pattern mean(x: float32[n], n = 8):
    all_reduce(y, op=avg)
"""


def call(argv: list[str], cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run outside this checkout's reach: an inherited PYTHONPATH would hide what is installed."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        argv, cwd=cwd, env=clean | variables, capture_output=True, text=True, check=False
    )


def done(argv: list[str], cwd: Path) -> None:
    result = call(argv, cwd)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as for a release: from the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder)]
    done([*build, str(ROOT)], ROOT)
    (built,) = folder.glob("*.whl")
    return built


def new_environment(folder: Path) -> Path:
    """An environment whose packages are this one's, but for commlang: nothing is downloaded.

    The `.pth` sorts last, so that an editable install's own comes before it.
    """
    venv.create(folder, with_pip=False)
    names = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", "venv", vars=names))
    (site / "zz_packages.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder / "bin" / "python"


def install(python: Path, *what: str) -> None:
    # What pip finds through the `.pth` is not the new environment's: not there, not to be removed.
    options = ["--quiet", "--no-index", "--no-deps", "--ignore-installed"]
    argv = [sys.executable, "-m", "pip", "--python", str(python), "install", *options, *what]
    done(argv, python.parent)


@dataclass(frozen=True, slots=True)
class Form:
    """One way to have commlang: how it is called, from where, and where its code must lie."""

    command: list[str]
    python: Path
    cwd: Path
    home: Path


@pytest.fixture(scope="module", params=["wheel", "editable", "checkout"])
def form(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Form:
    folder = tmp_path_factory.mktemp(request.param)
    python = new_environment(folder / "env")
    command = [str(python.with_name("commlang"))]
    match request.param:
        case "wheel":
            install(python, str(request.getfixturevalue("wheel")))
            return Form(command, python, folder, folder / "env")
        case "editable":
            install(python, "--no-build-isolation", "--editable", str(ROOT))
            return Form(command, python, folder, ROOT)
        case _:
            return Form([str(python), "-m", "commlang"], python, ROOT, ROOT)


def files(folder: str, suffix: str) -> list[Path]:
    found = sorted((ROOT / folder).rglob(f"*{suffix}"))
    assert found, f"{folder}/ holds no {suffix}"
    return found


def test_wheel_holds_the_package_its_grammar_and_its_patterns(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    packaged = {
        *(f"commlang/{path.relative_to(ROOT / 'commlang')}" for path in files("commlang", ".py")),
        *(f"commlang/_data/{path.relative_to(ROOT)}" for path in files("patterns", ".cl")),
        *(str(path.relative_to(ROOT)) for path in files("commlang/topology/machines", ".yaml")),
        "commlang/_data/grammar/commlang.lark",
        "commlang/_data/grammar/commlang.table",
        "commlang/py.typed",
    }
    assert packaged <= names
    tops = {name.split("/")[0] for name in names}
    assert tops == {"commlang", f"commlang-{__version__}.dist-info"}


def test_wheel_tells_version_licence_and_command(wheel: Path) -> None:
    about = f"commlang-{__version__}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        metadata = message_from_bytes(archive.read(f"{about}/METADATA"))
        commands = archive.read(f"{about}/entry_points.txt").decode()
        licence = archive.read(f"{about}/licenses/LICENSE").decode()
    assert metadata["Version"] == __version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert "commlang = commlang.cli:main" in commands
    assert licence == (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_code_and_data_are_those_of_the_form(form: Form) -> None:
    show = "import commlang.resources as r; print(r.__file__, r.grammar_path(), r.patterns_dir())"
    result = call([str(form.python), "-c", show], form.cwd)
    assert result.returncode == 0, result.stderr
    module, grammar, patterns = map(Path, result.stdout.split())
    assert all(path.is_relative_to(form.home) for path in (module, grammar, patterns))
    assert grammar.is_file()
    assert grammar.with_suffix(".table").is_file()
    assert any(patterns.rglob("*.cl"))


def test_version(form: Form) -> None:
    result = call([*form.command, "--version"], form.cwd)
    assert (result.returncode, result.stderr) == (0, "")
    assert __version__ in result.stdout.split()[-1]


def test_lint(form: Form, tmp_path: Path) -> None:
    clean, faulty = tmp_path / "clean.cl", tmp_path / "faulty.cl"
    clean.write_text(CLEAN, encoding="utf-8")
    faulty.write_text(FAULTY, encoding="utf-8")

    result = call([*form.command, "lint", str(clean)], form.cwd)
    assert result.returncode == 0, result.stdout + result.stderr

    result = call([*form.command, "lint", str(faulty)], form.cwd)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "faulty.cl:2:16" in result.stdout + result.stderr


def test_library_is_found(form: Form) -> None:
    result = call([*form.command, "list"], form.cwd)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "ring_all_reduce" in result.stdout
