"""Child processes run their own side's code, or the A/B fails closed."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_tokbudget.launching.worktree import worktree_at

from .ab_repository import HATCHLING, SETUPTOOLS, Repository, worker
from .environments import Environment

SCRIPTS = '[project.scripts]\nproj-run = "proj:main"\n'
MAIN = "def main():\n    print(WHERE, flush=True)\n"
START = "import os, subprocess, sys\nexe = sys.executable\nsys.stdout.flush()\n"
SPAWN = (
    "import multiprocessing, proj_child\n"
    "child = multiprocessing.get_context({!r}).Process(target=proj_child.main)\n"
    "child.start()\nchild.join()\n"
)
STARTS = {
    "popen": "subprocess.run([exe, '-m', 'proj'], check=True)",
    "script": "subprocess.run([os.path.dirname(exe) + '/proj-run'], check=True)",
    "shell": "subprocess.run('cd / && ' + exe + ' -m proj', shell=True, check=True)",
    "system": "assert os.system(exe + ' -m proj') == 0",
    "spawnv": "assert os.spawnv(os.P_WAIT, exe, [exe, '-m', 'proj']) == 0",
    "posix_spawn": (
        "pid = os.posix_spawn(exe, [exe, '-m', 'proj'], os.environ)\n"
        "assert os.waitpid(pid, 0)[1] == 0"
    ),
    "spawn": SPAWN.format("spawn"),
    "forkserver": SPAWN.format("forkserver"),
    "isolated": "subprocess.run([exe, '-I', '-m', 'proj'], check=True)",
    "no environment": "subprocess.run([exe, '-m', 'proj'], check=True, env={})",
    "grandchild": (
        'code = \'import subprocess, sys; subprocess.run([sys.executable, "-m", "proj"])\'\n'
        "subprocess.run([exe, '-c', code], check=True)"
    ),
    "unseen": "import ctypes\nctypes.CDLL(None).system((exe + ' -m proj').encode())",
}
"""Ways to start a Python that runs the project's package, which this process never imports."""


class Installed:
    """A repository of two commits, installed into an environment of its own."""

    def __init__(self, top: Path, project: str, root: str, *args: str) -> None:
        self.environment = Environment.create(top / "environment")
        self.repository = Repository(top / "repo", self.environment.site)
        self.repository.top.mkdir()
        self.repository.git("init", "-q")
        for where in ("ref", "head"):
            text = f"WHERE = {where!r}\n{MAIN}"
            main = "import proj\nproj.main()\n"
            self.repository.commit(
                {
                    "pyproject.toml": project + SCRIPTS,
                    ".gitignore": "*.egg-info\nbuild\n__pycache__\n*.so\n",
                    f"{root}proj/__init__.py": text,
                    f"{root}proj/__main__.py": main,
                }
            )
        self.package = self.repository.top / root / "proj"
        self.environment.install(self.repository.top, *args)
        # What a spawned process imports by name must not be of the project itself.
        (self.environment.site / "proj_child.py").write_text(
            "def main():\n    import proj\n    proj.main()\n"
        )

    def lines(self, side: str, code: str) -> list[str]:
        with worktree_at(self.repository.ref()) as worktree:
            python = self.environment.python
            return worker(self.repository, worktree, side, START + code, python)


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """``pip install .``"""
    project = HATCHLING.format(package="src/proj")
    return Installed(tmp_path_factory.mktemp("copied"), project, "src/", ".")


@pytest.fixture(scope="module", params=["hatchling", "setuptools"])
def editable(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Installed:
    """``pip install -e .``: by a path, or by a finder of setuptools."""
    top = tmp_path_factory.mktemp("editable")
    if request.param == "hatchling":
        return Installed(top, HATCHLING.format(package="src/proj"), "src/", "-e", ".")
    return Installed(top, SETUPTOOLS.format(where="."), "", "-e", ".")


@pytest.mark.parametrize("side", ["head", "ref"])
@pytest.mark.parametrize("start", STARTS)
def test_a_copy_that_only_a_child_runs_fails_closed(
    copied: Installed, start: str, side: str
) -> None:
    lines = copied.lines(side, STARTS[start])

    # Both sides ran what was installed last.
    assert lines[0] == "head"
    (fault,) = lines[lines.index("--") + 2 :]
    assert (
        f"such as a child of this side or the other, opened {copied.repository.site}/proj/" in fault
    )
    assert f"the-project, which was installed from {copied.repository.top}" in fault
    assert "pip install -e" in fault
    assert "uninstall it" in fault
    if start == "unseen":
        assert "no start of one was seen" in fault
    else:
        assert "started here:" in fault
        assert "multiprocessing" in fault if "spawn." in STARTS[start] else "proj" in fault


@pytest.mark.parametrize("start", STARTS)
def test_children_of_an_editable_install(editable: Installed, start: str) -> None:
    head = editable.lines("head", "os.chdir('/')\n" + STARTS[start])
    ref = editable.lines("ref", "os.chdir('/')\n" + STARTS[start])

    assert head == ["head", "--"]
    if start in ("isolated", "no environment"):
        # Nothing makes such a child import the ref's code.
        assert ref[0] == "head"
        assert "would import proj from the tree under test" in ref[-1]
        assert "without -I and -E" in ref[-1]
    else:
        assert ref == ["ref", "--"]


@pytest.mark.parametrize("side", ["head", "ref"])
@pytest.mark.parametrize(
    "code",
    [
        "subprocess.run(['git', '--version'], stdout=subprocess.DEVNULL)\nprint(1)",
        "subprocess.run(['uname'], env={}, stdout=subprocess.DEVNULL)\nprint(1)",
        "os.system('true')\nprint(1)",
        "subprocess.run([exe, '-c', 'print(1)'])",
        "subprocess.run([exe, '-m', 'pip', '--version'], stdout=subprocess.DEVNULL)\nprint(1)",
        "import importlib.metadata as m\nassert m.version('the-project')\nprint(1)",
    ],
)
def test_children_that_run_nothing_of_a_copy_are_no_fault(
    copied: Installed, side: str, code: str
) -> None:
    assert copied.lines(side, code) == ["1", "--"]


@pytest.mark.parametrize("side", ["head", "ref"])
def test_a_child_that_finds_the_tree_first_is_no_fault(copied: Installed, side: str) -> None:
    code = "subprocess.run([exe, '-m', 'proj'], env={**os.environ, 'PYTHONPATH': 'src'})"

    assert copied.lines(side, code) == [side, "--"]


def test_a_copy_in_a_directory_of_the_childs_own_fails_closed(
    editable: Installed, tmp_path: Path
) -> None:
    editable.environment.install(editable.repository.top, ".", "--target", str(tmp_path))
    code = f"subprocess.run([exe, '-m', 'proj'], cwd='/', env={{'PYTHONPATH': {str(tmp_path)!r}}})"

    lines = editable.lines("head", code)

    assert "a child process may have run a file" in lines[-1]
    assert "it was not known when this process began" in lines[-1]


FORKS = {
    "fork": (
        "pid = os.fork()\nif not pid:\n    import proj\n    os._exit(0)\nos.waitpid(pid, 0)\n"
    ),
    "multiprocessing": SPAWN.format("fork"),
    "killed": (
        "pid = os.fork()\n"
        "if not pid:\n    import proj, signal\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "os.waitpid(pid, 0)\n"
    ),
    "loader": (
        "import torch.utils.data as data\n"
        "class Set(data.Dataset):\n"
        "    def __len__(self):\n        return 2\n"
        "    def __getitem__(self, index):\n        import proj\n        return index\n"
        "list(data.DataLoader(Set(), num_workers=1, multiprocessing_context='fork'))\n"
    ),
}


@pytest.mark.parametrize("side", ["head", "ref"])
@pytest.mark.parametrize("fork", FORKS)
def test_a_forked_child_that_imports_a_copy_fails_closed(
    copied: Installed, fork: str, side: str
) -> None:
    lines = copied.lines(side, FORKS[fork])

    assert f"module proj of a forked child came from {copied.repository.site}/proj" in lines[-1]
    assert "pip install -e" in lines[-1]


@pytest.mark.parametrize("side", ["head", "ref"])
def test_a_forked_child_imports_its_own_sides_code(editable: Installed, side: str) -> None:
    assert editable.lines(side, FORKS["multiprocessing"]) == [side, "--"]


def test_what_a_forked_child_may_not_import_fails_closed(editable: Installed) -> None:
    (editable.package / "_fast.so").write_bytes(b"")
    try_it = "import proj\ntry:\n    import proj._fast\nexcept ImportError:\n    pass\n"
    code = f"if not (pid := os.fork()):\n    exec({try_it!r})\n    os._exit(0)\nos.waitpid(pid, 0)"

    lines = editable.lines("ref", code)

    assert "the extension proj._fast is built in the tree under test" in lines[-1]


def test_what_this_package_starts_itself_is_not_noted(copied: Installed) -> None:
    code = (
        "from pathlib import Path\n"
        "from pytest_tokbudget.evidence.threads import ThreadClockReader\n"
        "from pytest_tokbudget.launching.witness import Witness\n"
        "witness = Witness(Path('none'))\nwitness.install()\n"
        "reader = ThreadClockReader(10)\nreader.start()\nreader.stop()\n"
        "subprocess.run([exe, '-c', 'pass'])\n"
        "print([one.program.command[1:] for one in witness.notes()])"
    )

    assert copied.lines("head", code)[0] == "[('-c', 'pass')]"
