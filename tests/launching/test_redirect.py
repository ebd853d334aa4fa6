"""A worker at a ref imports the ref's code however the project is installed, or fails closed."""

from __future__ import annotations

import importlib.util
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_tokbudget.launching.worktree import worktree_at

from .ab_repository import HATCHLING, SETUPTOOLS, Repository, worker

SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
PUT = "import proj\ndef put(queue):\n    queue.put(proj.WHERE)\n"
PRINT = "import proj.deep.leaf as leaf, proj\nprint(proj.WHERE, leaf.WHERE)"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """An empty repository."""
    repository = Repository(tmp_path / "repo", tmp_path / "site")
    repository.top.mkdir()
    repository.git("init", "-q")
    return repository


def package(where: str, root: str) -> dict[str, str]:
    """A package that says which commit it is of."""
    text = f"WHERE = {where!r}\n"
    names = ("__init__.py", "deep/__init__.py", "deep/leaf.py")
    return {f"{root}proj/{name}": text for name in names}


def two_commits(repository: Repository, root: str, project: str) -> None:
    """REF, then HEAD."""
    repository.commit({"pyproject.toml": project, **package("ref", root)})
    repository.commit(package("head", root))


@pytest.fixture
def worktree(repository: Repository) -> Iterator[Path]:
    """The checkout of the commit before the last."""
    with worktree_at(repository.ref()) as path:
        yield path


BACKENDS = {
    "hatchling-src": ("hatchling.build", "src/", HATCHLING.format(package="src/proj"), {}),
    "hatchling-flat": ("hatchling.build", "", HATCHLING.format(package="proj"), {}),
    "setuptools-src": ("setuptools.build_meta", "src/", SETUPTOOLS.format(where="src"), {}),
    "setuptools-flat": ("setuptools.build_meta", "", SETUPTOOLS.format(where="."), {}),
    "setuptools-deep": ("setuptools.build_meta", "py/lib/", SETUPTOOLS.format(where="py/lib"), {}),
    "setuptools-strict": (
        "setuptools.build_meta",
        "src/",
        SETUPTOOLS.format(where="src"),
        {"editable_mode": "strict"},
    ),
    "setuptools-compat": (
        "setuptools.build_meta",
        "",
        SETUPTOOLS.format(where="."),
        {"editable_mode": "compat"},
    ),
}


@pytest.mark.parametrize("kind", BACKENDS)
def test_an_editable_install_is_redirected(repository: Repository, kind: str) -> None:
    backend, root, project, settings = BACKENDS[kind]
    two_commits(repository, root, project)
    repository.install(backend, **settings)

    with worktree_at(repository.ref()) as worktree:
        assert worker(repository, worktree, "head", PRINT) == ["head head", "--"]
        assert worker(repository, worktree, "ref", PRINT) == ["ref ref", "--"]


@pytest.mark.parametrize("kind", ["hatchling-src", "setuptools-flat"])
def test_children_import_the_refs_code_too(repository: Repository, kind: str) -> None:
    backend, root, project, settings = BACKENDS[kind]
    two_commits(repository, root, project)
    repository.install(backend, **settings)
    code = (
        "import subprocess, sys\n"
        "child = 'import site; site.addsitedir(sys.argv[1]); import proj; print(proj.WHERE)'\n"
        f"args = [sys.executable, '-c', 'import sys;' + child, {str(repository.site)!r}]\n"
        "print(subprocess.check_output(args, text=True, cwd='/').strip())"
    )

    with worktree_at(repository.ref()) as worktree:
        assert worker(repository, worktree, "ref", code) == ["ref", "--"]


@pytest.mark.parametrize("kind", ["hatchling-src", "setuptools-flat"])
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_spawned_children_import_the_refs_code_too(
    repository: Repository, kind: str, method: str
) -> None:
    backend, root, project, settings = BACKENDS[kind]
    two_commits(repository, root, project)
    repository.commit({f"{root}proj/child.py": PUT})
    repository.commit({f"{root}proj/__init__.py": "WHERE = 'newest'\n"})
    repository.install(backend, **settings)
    # The child of a virtual environment would read the same files; here it is told to.
    (repository.site / "told.py").write_text(
        f"import site\nsite.addsitedir({str(repository.site)!r})\n"
        "def put(queue):\n    import proj.child\n    proj.child.put(queue)\n"
    )
    code = (
        "sys.path[:] = [one for one in sys.path if one]\n"
        "import multiprocessing, told\n"
        f"context = multiprocessing.get_context({method!r})\n"
        "queue = context.SimpleQueue()\n"
        "child = context.Process(target=told.put, args=(queue,))\n"
        "child.start()\nchild.join()\nprint(queue.get())"
    )

    with worktree_at(repository.ref()) as worktree:
        assert worker(repository, worktree, "head", code) == ["newest", "--"]
        assert worker(repository, worktree, "ref", code) == ["head", "--"]


@pytest.mark.parametrize(
    ("backend", "project"),
    [
        ("hatchling.build", HATCHLING.format(package="src/projspace")),
        ("setuptools.build_meta", SETUPTOOLS.format(where="src")),
    ],
)
def test_namespace_packages(repository: Repository, backend: str, project: str) -> None:
    repository.commit({"pyproject.toml": project, "src/projspace/tool/__init__.py": "W = 'ref'"})
    repository.commit({"src/projspace/tool/__init__.py": "W = 'head'"})
    repository.install(backend)
    code = "import projspace.tool\nprint(projspace.tool.W)"

    with worktree_at(repository.ref()) as worktree:
        assert worker(repository, worktree, "head", code) == ["head", "--"]
        assert worker(repository, worktree, "ref", code) == ["ref", "--"]


def test_a_layout_that_moved_to_src(repository: Repository) -> None:
    two_commits(repository, "", HATCHLING.format(package="proj"))
    repository.git("rm", "-rq", "proj")
    repository.commit(
        {"pyproject.toml": HATCHLING.format(package="src/proj"), **package("head", "src/")}
    )
    repository.install("hatchling.build")

    with worktree_at(repository.ref("HEAD~2")) as worktree:
        assert worker(repository, worktree, "ref", PRINT) == ["ref ref", "--"]


@pytest.mark.parametrize("backend", ["hatchling.build", "setuptools.build_meta"])
@pytest.mark.parametrize("side", ["head", "ref"])
def test_a_plain_install_fails_closed(repository: Repository, backend: str, side: str) -> None:
    hatchling = backend.startswith("hatchling")
    project = HATCHLING.format(package="src/proj") if hatchling else SETUPTOOLS.format(where="src")
    two_commits(repository, "src/", project)
    repository.install(backend, kind="wheel")

    with worktree_at(repository.ref()) as worktree:
        lines = worker(repository, worktree, side, PRINT)

    assert "worth nothing" in lines[2]
    assert "module proj came from" in lines[3]
    assert "pip install -e" in lines[3]


def test_a_plain_install_from_a_deep_directory_fails_closed(repository: Repository) -> None:
    root = "packages/one/lib/"
    repository.commit({f"{root[:-4]}pyproject.toml": SETUPTOOLS.format(where="lib")})
    repository.commit(package("head", root))
    repository.top /= "packages/one"
    repository.install("setuptools.build_meta", kind="wheel")
    repository.top = repository.top.parents[1]

    with worktree_at(repository.ref()) as worktree:
        lines = worker(repository, worktree, "head", PRINT)

    assert "module proj came from" in "\n".join(lines)


@pytest.mark.parametrize("name", ["the-project", "another"])
def test_a_copy_of_an_unseen_import_name_fails_closed(repository: Repository, name: str) -> None:
    text = "from setuptools import setup\nNAME = 'the-project'\nsetup(name=NAME)\n"
    repository.commit({"setup.py": text, "python/a.txt": ""})
    repository.commit({"python/proj/leaf.py": "WHERE = 'head'\n"})
    pip_installs(repository.site, name, "proj/leaf.py", str(repository.top))
    pip_installs(repository.site, "unrelated", "other/thing.py", "/elsewhere")

    with worktree_at(repository.ref()) as worktree:
        lines = worker(repository, worktree, "head", "import proj.leaf, other.thing")

    assert f"module proj.leaf came from {repository.site}/proj/leaf.py" in lines[-1]
    assert f"distribution {name}, which was installed from {repository.top}" in lines[-1]
    assert "pip install -e" in lines[-1]
    assert "other.thing" not in "".join(lines)


def pip_installs(site: Path, name: str, file: str, origin: str) -> None:
    """Write what ``pip install DIRECTORY`` records (PEP 376, 610)."""
    information = site / f"{name.replace('-', '_')}-1.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (information / "RECORD").write_text(f"{file},,\n")
    url = f'{{"dir_info": {{}}, "url": "file://{origin}"}}'
    (information / "direct_url.json").write_text(url)
    (site / file).parent.mkdir(parents=True, exist_ok=True)
    (site / file).write_text("WHERE = 'site'\n")


def test_names_of_the_tree_that_others_provide_as_well_are_no_fault(
    repository: Repository,
) -> None:
    files = {"third_party/msgspec/__init__.py": "", "tools/json/__init__.py": ""}
    two_commits(repository, "src/", HATCHLING.format(package="src/proj"))
    repository.commit(files)
    repository.install("hatchling.build")

    with worktree_at(repository.ref()) as worktree:
        lines = worker(repository, worktree, "head", "import msgspec, json\n" + PRINT)

    assert lines == ["head head", "--"]


def test_an_unbuilt_extension_fails_closed_although_the_code_goes_on(
    repository: Repository,
) -> None:
    fallback = "try:\n    from . import _fast\nexcept ImportError:\n    _fast = None\n"
    two_commits(repository, "src/", HATCHLING.format(package="src/proj"))
    repository.commit({"src/proj/__init__.py": fallback, ".gitignore": "*.so\n"})
    repository.commit({"src/proj/deep/leaf.py": ""})
    (repository.top / f"src/proj/_fast{SUFFIX}").write_bytes(b"")
    repository.install("hatchling.build")

    with worktree_at(repository.ref()) as worktree:
        lines = worker(repository, worktree, "ref", "import proj\nprint(proj._fast)")

    assert lines[0] == "None"
    assert "tokbudget_against_build" in lines[3]


def test_an_extension_built_at_the_ref_is_the_refs(repository: Repository) -> None:
    spec = importlib.util.find_spec("_bisect")
    if spec is None or not spec.has_location or spec.origin is None:
        pytest.skip("this interpreter has no shared library to copy")
    two_commits(repository, "src/", HATCHLING.format(package="src/proj"))
    name = f"src/proj/_bisect{SUFFIX}"
    content = Path(spec.origin).read_bytes()
    (repository.top / name).write_bytes(content)
    repository.install("hatchling.build")

    with worktree_at(repository.ref()) as worktree:
        (worktree / name).write_bytes(content)
        code = "import proj._bisect as it\nprint(it.__file__)"
        assert worker(repository, worktree, "ref", code) == [str(worktree / name), "--"]
        stray = f"import ctypes\nctypes.CDLL({str(repository.top / name)!r})\n"
        lines = worker(repository, worktree, "ref", stray)

    assert f"library {repository.top / name} is mapped from the tree under test" in lines[-1]


def test_code_that_names_the_other_tree_itself_fails_closed(repository: Repository) -> None:
    two_commits(repository, "", HATCHLING.format(package="proj"))
    repository.commit({"extra/loose.py": ""})
    code = (
        "from importlib.machinery import SourceFileLoader\n"
        f"load = SourceFileLoader('loose', {str(repository.top / 'extra/loose.py')!r})\n"
        "load.load_module()"
    )

    with worktree_at(repository.ref()) as worktree:
        lines = worker(repository, worktree, "ref", "import warnings\n" + code)

    assert "module loose came from the tree under test" in lines[-1]


def test_a_module_that_is_new_does_not_exist_at_the_ref(repository: Repository) -> None:
    two_commits(repository, "src/", HATCHLING.format(package="src/proj"))
    repository.commit({"src/fresh.py": "", "pyproject.toml": SETUPTOOLS.format(where="src")})
    code = (
        f"sys.path.append({str(repository.top / 'src')!r})\n"
        "try:\n    import fresh\nexcept ModuleNotFoundError as error:\n    print(error)"
    )

    with worktree_at(repository.ref()) as worktree:
        lines = worker(repository, worktree, "ref", code)

    assert "does not exist at the ref" in lines[0]
    assert lines[1:] == ["--"]
