"""Which imported files count as code of the repository that no commit has."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from pytest_tokbudget.evidence.imported import untracked_imports


def _modules(**files: Path | None) -> dict[str, ModuleType]:
    """Modules by name; ``__`` in a name stands for a dot."""
    modules = {}
    for key, file in files.items():
        name = key.replace("__", ".")
        modules[name] = ModuleType(name)
        if file is not None:
            modules[name].__file__ = str(file)
    return modules


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path.resolve() / "repo"
    top.mkdir()
    return top


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    return path


def test_tracked_files_and_files_elsewhere_are_left_out(top: Path, tmp_path: Path) -> None:
    modules = _modules(
        a=_made(top / "a.py"), b=_made(top / "b.py"), c=_made(tmp_path / "c.py"), sys=None
    )

    assert untracked_imports(top, ["a.py"], modules) == ["b.py"]


def test_the_module_imported_lazily_and_twice_is_named_once(top: Path) -> None:
    file = _made(top / "pkg" / "b.py")

    assert untracked_imports(top, [], _modules(pkg=None, pkg__b=file, b=file)) == ["pkg/b.py"]


@pytest.mark.parametrize(
    "name", ["venv/lib/python3/site-packages/x.py", "env/lib/python3/dist-packages/p/x.py"]
)
def test_what_is_installed_inside_the_tree_is_not_of_the_tree(top: Path, name: str) -> None:
    assert untracked_imports(top, [], _modules(x=_made(top / name))) == []


def test_the_interpreter_may_live_inside_the_tree(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "base_prefix", str(top / "conda"))
    modules = _modules(x=_made(top / "conda" / "lib" / "x.py"), y=_made(top / "y.py"))

    assert untracked_imports(top, [], modules) == ["y.py"]


def test_a_tree_inside_the_interpreters_is_a_tree(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "base_prefix", str(top.parent))
    monkeypatch.setattr(sys, "prefix", str(top))

    assert untracked_imports(top, [], _modules(y=_made(top / "y.py"))) == ["y.py"]


def test_what_a_library_writes_and_imports_under_its_own_name_is_the_librarys(
    top: Path, tmp_path: Path
) -> None:
    written = _made(top / ".cache" / "kernel.py")
    library = tmp_path / "site-packages" / "lib" / "__init__.py"

    assert untracked_imports(top, [], _modules(lib=library, lib__cache__k=written)) == []
    assert untracked_imports(top, [], _modules(lib=None, lib__k=written)) == [".cache/kernel.py"]


@pytest.mark.parametrize(
    ("name", "counts"), [("x.pyc", True), ("x.so", False), ("x.abi3.so", False), ("x", False)]
)
def test_python_files_count_and_products_of_sources_do_not(
    top: Path, name: str, counts: bool
) -> None:
    assert bool(untracked_imports(top, [], _modules(x=_made(top / name)))) is counts


def test_a_link_is_as_good_as_what_it_is_or_leads_to(top: Path, tmp_path: Path) -> None:
    _made(top / "real" / "a.py")
    _made(tmp_path / "out" / "b.py")
    (top / "to_tracked.py").symlink_to(top / "real" / "a.py")
    (top / "to_dir").symlink_to(top / "real")
    (top / "ignored_out.py").symlink_to(tmp_path / "out" / "b.py")
    (top / "ignored_dir").symlink_to(tmp_path / "out")
    (top / "tracked_dir").symlink_to(tmp_path / "out")
    modules = _modules(
        a=top / "to_tracked.py",
        b=top / "to_dir" / "a.py",
        c=top / "ignored_out.py",
        d=top / "ignored_dir" / "b.py",
        e=top / "tracked_dir" / "b.py",
    )

    found = untracked_imports(top, ["real/a.py", "tracked_dir"], modules)

    assert found == ["ignored_dir/b.py", "ignored_out.py"]


def test_a_tree_known_by_another_name_is_the_same_tree(top: Path, tmp_path: Path) -> None:
    _made(top / "a.py")
    _made(top / "b.py")
    (tmp_path / "link").symlink_to(top)
    modules = _modules(a=tmp_path / "link" / "a.py", b=tmp_path / "link" / "b.py")

    assert untracked_imports(top, ["a.py"], modules) == ["b.py"]


class Strange(ModuleType):
    @property
    def __file__(self) -> str:  # type: ignore[override]
        raise RuntimeError("a lazy proxy")


def test_modules_may_be_anything(top: Path) -> None:
    assert untracked_imports(top, [], {"strange": Strange("strange")}) == []
