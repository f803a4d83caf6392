"""Imports: which file, which definition, and the message where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from commlang import resources
from commlang.errors import PatternError
from commlang.resolve.check import check_all
from commlang.resolve.modules import MAX_FILES, Module, load_module
from commlang.source import Source

ONE = "pattern {0}(x: float32[n]):\n    {1}\n"


def _one(name: str, body: str = "pass") -> str:
    return ONE.format(name, body)


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "library"
    folder.mkdir()
    monkeypatch.setattr(resources, "patterns_dir", lambda: folder)
    return folder


@pytest.fixture
def project(tmp_path: Path, library: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def _write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def _load(path: Path) -> Module:
    return load_module(Source.read(path))


def _fault(path: Path) -> list[tuple[str, str, str, str | None, tuple[str, ...]]]:
    with pytest.raises(PatternError) as raised:
        _load(path)
    folder = str(path.parent) + "/"
    return [
        (
            d.code,
            d.where().replace(folder, ""),
            d.message.replace(str(path.parent), "HERE"),
            d.help,
            tuple(note.replace(folder, "") for note in d.notes),
        )
        for d in raised.value.diagnostics
    ]


def test_symbols_are_own_definitions_and_imports(project: Path) -> None:
    _write(project, "ring.cl", _one("ring") + "extern work(k)\n")
    text = "from ring import ring as r, work\n" + _one("main", "r(x)") + "extern mine(k)\n"
    module = _load(_write(project, "main.cl", text))
    assert sorted(module.symbols) == ["main", "mine", "r", "work"]
    assert module.symbols["r"].node.name == "ring"
    assert module.symbols["r"].module.source.path == str(project / "ring.cl")
    assert module.symbols["main"].module is module
    assert module.exported == ("main",)
    assert module.symbols["r"] is module.symbols["r"].module.symbols["ring"]


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("from a import p", "sub/a.cl"),
        ("from .a import p", "sub/a.cl"),
        ("from ..b import p", "b.cl"),
        ("from ...c import p", "../c.cl"),
        ("from .deep.d import p", "sub/deep/d.cl"),
        ("from deep.d import p", "sub/deep/d.cl"),
        ("from ..other.e import p", "other/e.cl"),
    ],
)
def test_paths_start_from_the_folder_of_the_file(statement: str, place: str, project: Path) -> None:
    target = _write(project, place, _one("p"))
    module = _load(_write(project, "sub/main.cl", f"{statement}\n" + _one("main")))
    assert Path(module.symbols["p"].module.source.path).resolve() == target.resolve()


def test_the_library_is_searched_by_path_and_by_file_name(project: Path, library: Path) -> None:
    _write(library, "collectives/all_gather.cl", _one("everything"))
    for path in ("collectives.all_gather", "all_gather"):
        main = _write(project, "main.cl", f"from {path} import everything\n" + _one("main"))
        assert "everything" in _load(main).symbols


def test_a_file_nearby_wins_over_the_library(project: Path, library: Path) -> None:
    _write(library, "ring.cl", _one("p"))
    near = _write(project, "ring.cl", _one("p"))
    module = _load(_write(project, "main.cl", "from ring import p\n"))
    assert module.symbols["p"].module.source.path == str(near)


def test_dots_never_reach_the_library(project: Path, library: Path) -> None:
    _write(library, "ring.cl", _one("p"))
    assert _fault(_write(project, "main.cl", "from .ring import p\n")) == [
        ("CL106", "main.cl:1:1", "there is no ring.cl in HERE", None, ())
    ]


def test_a_library_file_name_in_two_folders_is_ambiguous(project: Path, library: Path) -> None:
    _write(library, "a/ring.cl", _one("p"))
    _write(library, "b/ring.cl", _one("p"))
    assert _fault(_write(project, "main.cl", "from ring import p\n")) == [
        (
            "CL106",
            "main.cl:1:1",
            "`ring` names several library files",
            "write `from a.ring import …` or `from b.ring import …`",
            (),
        )
    ]


def test_text_without_a_file_imports_from_the_working_directory(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(project, "ring.cl", _one("ring"))
    monkeypatch.chdir(project)
    module = load_module(Source("from ring import ring\n" + _one("main", "ring(x)")))
    assert module.symbols["ring"].module.source.path == "ring.cl"


def test_a_missing_file_is_shown_with_the_nearest_name(project: Path, library: Path) -> None:
    _write(project, "ring_all_reduce.cl", _one("p"))
    _write(library, "pipelines/gpipe.cl", _one("p"))
    text = "from ring_al_reduce import p\nfrom gpip import p\nfrom .nothing_like_it import p\n"
    looked = "there is no {} in HERE, nor in the pattern library"
    assert _fault(_write(project, "main.cl", text)) == [
        (
            "CL106",
            "main.cl:1:1",
            looked.format("ring_al_reduce.cl"),
            "did you mean `ring_all_reduce`?",
            (),
        ),
        ("CL106", "main.cl:2:1", looked.format("gpip.cl"), "did you mean `pipelines.gpipe`?", ()),
        ("CL106", "main.cl:3:1", "there is no nothing_like_it.cl in HERE", None, ()),
    ]


FOLDER = "from rings import up, down as other\n"


def test_a_folder_stands_for_its_files(project: Path, library: Path) -> None:
    _write(library, "rings/up.cl", _one("up"))
    _write(library, "rings/down.cl", _one("down"))
    module = load_module(Source.read(_write(project, "main.cl", FOLDER)))
    assert sorted(module.symbols) == ["other", "up"]
    assert module.symbols["other"].node.name == "down"


def test_a_name_that_is_no_file_of_a_folder_is_shown_with_its_files(
    project: Path, library: Path
) -> None:
    _write(library, "rings/up.cl", _one("up"))
    _write(library, "rings/down.cl", _one("down"))
    fault = _fault(_write(project, "main.cl", "from rings import sideways\n"))[0]
    assert fault[2] == "there is no rings/sideways.cl in HERE, nor in the pattern library"
    assert fault[3] == "the files there are down, up"


def test_a_missing_name_is_shown_at_the_name(project: Path) -> None:
    _write(project, "ring.cl", _one("ring_all_reduce"))
    text = "from ring import ring_all_reduce, rinq_all_reduce, zzz\n"
    message = "`ring` has no pattern or extern `{}`"
    assert _fault(_write(project, "main.cl", text)) == [
        (
            "CL106",
            "main.cl:1:35",
            message.format("rinq_all_reduce"),
            "did you mean `ring_all_reduce`?",
            (),
        ),
        ("CL106", "main.cl:1:52", message.format("zzz"), None, ()),
    ]


def test_a_fault_in_an_imported_file_is_shown_there(project: Path) -> None:
    _write(project, "bad.cl", "pattern rank():\n    pass\n")
    _write(project, "middle.cl", "from bad import p\n")
    (fault,) = _fault(_write(project, "main.cl", "from middle import p\n"))
    message = "`rank` is a reserved word and cannot be a name"
    assert fault[:3] == ("CL105", "bad.cl:1:9", message)
    assert fault[4] == ("imported at middle.cl:1:1",)


def test_a_missing_file_of_an_imported_file_names_the_importer(project: Path) -> None:
    _write(project, "middle.cl", "from .bad import p\n")
    assert _fault(_write(project, "main.cl", "from middle import p\n"))[0] == (
        "CL106",
        "middle.cl:1:1",
        "there is no bad.cl in HERE",
        None,
        ("imported at main.cl:1:1",),
    )


def test_an_imported_file_that_is_no_text_is_a_finding(project: Path) -> None:
    (project / "bin.cl").write_bytes(b"pattern \xff")
    ((code, where, message, _, _),) = _fault(_write(project, "main.cl", "from bin import p\n"))
    assert (code, where) == ("CL106", "main.cl:1:1")
    assert message == "HERE/bin.cl:1: byte 0xff is not UTF-8; write it as UTF-8 text"


def test_files_may_import_one_another(project: Path) -> None:
    a = _write(project, "a.cl", "from b import odd\n" + _one("even", "odd(x)"))
    _write(project, "b.cl", "from a import even\n" + _one("odd", "even(x)"))
    module = _load(a)
    other = module.symbols["odd"].module
    assert other.symbols["even"].module is module
    assert [m.source.path for m in module.reachable()] == [str(a), str(project / "b.cl")]
    assert check_all(module) == []


def test_a_file_passes_on_what_it_imports(project: Path) -> None:
    _write(project, "c.cl", _one("p"))
    _write(project, "b.cl", "from c import p as q\n")
    module = _load(_write(project, "a.cl", "from b import q as r\n"))
    assert module.symbols["r"].node.name == "p"


def test_a_name_imported_in_a_circle_is_refused(project: Path) -> None:
    _write(project, "b.cl", "from a import p\n")
    faults = _fault(_write(project, "a.cl", "from b import p\n"))
    assert [(where, message) for _, where, message, _, _ in faults] == [
        ("a.cl:1:15", "`p` is imported in a circle and defined nowhere"),
        ("b.cl:1:15", "`p` is imported in a circle and defined nowhere"),
    ]


def test_an_import_of_a_name_that_the_file_has_is_a_duplicate(project: Path) -> None:
    _write(project, "ring.cl", _one("p"))
    module = _load(_write(project, "main.cl", "from ring import p, p\n" + _one("p")))
    assert module.symbols["p"].module is module
    found = [(d.code, d.where().rsplit("/")[-1], d.message, d.help) for d in check_all(module)]
    message = "`p` is already defined in this file"
    assert found == [
        ("CL105", "main.cl:1:21", message, "import it by another name: `p as …`"),
        ("CL105", "main.cl:2:9", message, None),
    ]


def test_check_all_says_where_a_faulty_file_was_imported(project: Path) -> None:
    _write(project, "ring.cl", _one("p", "send(x)"))
    main = _write(project, "main.cl", "from ring import p\n" + _one("main", "p(y)"))
    found = [(d.where().rsplit("/")[-1], d.message, d.notes) for d in check_all(_load(main))]
    assert found == [
        ("main.cl:3:7", "`y` is not defined", ()),
        ("ring.cl:2:5", "`send` needs `dst`", (f"imported at {main}:1:1",)),
    ]


def test_the_number_of_files_is_bounded(project: Path) -> None:
    for i in range(MAX_FILES):
        _write(project, f"f{i}.cl", f"from f{i + 1} import p\n")
    _write(project, f"f{MAX_FILES}.cl", _one("p"))
    (fault, *_) = _fault(project / "f0.cl")
    assert fault[1:3] == (f"f{MAX_FILES - 1}.cl:1:1", f"more than {MAX_FILES} files are imported")
    assert _load(project / "f1.cl").symbols["p"].node.name == "p"


def test_a_name_too_long_for_a_file_is_just_missing(project: Path) -> None:
    faults = _fault(_write(project, "main.cl", f"from .{'a' * 300} import p\n"))
    assert faults[0][2] == f"there is no {'a' * 300}.cl in HERE"


def test_digest_follows_the_text_of_every_file_but_not_their_place(tmp_path: Path) -> None:
    def digest(folder: str, ring: str) -> str:
        _write(tmp_path, f"{folder}/ring.cl", ring)
        text = "from ring import p\n" + _one("main")
        return _load(_write(tmp_path, f"{folder}/main.cl", text)).digest()

    first = digest("one", _one("p"))
    assert len(first) == 64
    assert digest("elsewhere/two", _one("p")) == first
    assert digest("three", _one("p") + "\n") != first


def test_digest_tells_which_import_is_which_file(tmp_path: Path) -> None:
    def digest(folder: str, first: str, second: str) -> str:
        _write(tmp_path, f"{folder}/a.cl", _one("p", first))
        _write(tmp_path, f"{folder}/b.cl", _one("p", second))
        text = "from a import p as f\nfrom b import p as g\n" + _one("main", "f(x)")
        return _load(_write(tmp_path, f"{folder}/main.cl", text)).digest()

    assert digest("one", "pass", "p(x)") != digest("two", "p(x)", "pass")
