"""Real repositories of two commits, installed the way people install what they work on."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from pytest_tokbudget.launching.spec_file import SessionFiles
from pytest_tokbudget.launching.trees import trees_of
from pytest_tokbudget.launching.worktree import Ref, resolve_ref
from pytest_tokbudget.records.launch import Trees

GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]

HATCHLING = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "the-project"
version = "1"
[tool.hatch.build.targets.wheel]
packages = ["{package}"]
"""
SETUPTOOLS = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "the-project"
version = "1"
[tool.setuptools.packages.find]
where = ["{where}"]
include = ["proj*"]
"""


@dataclass
class Repository:
    """A git repository; ``site`` is a ``site-packages`` for what is installed from it."""

    top: Path
    site: Path

    def git(self, *args: str) -> str:
        done = subprocess.run([*GIT, "-C", str(self.top), *args], capture_output=True, check=True)
        return done.stdout.decode()

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def commit(self, files: dict[str, str]) -> str:
        self.write(files)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a commit")
        return self.git("rev-parse", "HEAD").strip()

    def ref(self, name: str = "HEAD~1") -> Ref:
        return resolve_ref(self.top, name)

    def install(self, backend: str, kind: str = "editable", **settings: str) -> None:
        """What ``pip install -e .`` (or ``pip install .``) puts into ``site``, by the backend."""
        self.site.mkdir(exist_ok=True)
        wheels = self.site.parent / "wheels"
        wheels.mkdir(exist_ok=True)
        code = (
            "import importlib, json, sys\n"
            "backend = importlib.import_module(sys.argv[1])\n"
            "build = getattr(backend, 'build_' + sys.argv[2])\n"
            "print(build(sys.argv[3], json.loads(sys.argv[4])))\n"
        )
        given = "{" + ", ".join(f'"{key}": "{value}"' for key, value in settings.items()) + "}"
        done = subprocess.run(
            [sys.executable, "-c", code, backend, kind, str(wheels), given],
            cwd=self.top,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        name = done.stdout.decode().splitlines()[-1]
        with zipfile.ZipFile(wheels / name) as wheel:
            wheel.extractall(self.site)


def worker(
    repository: Repository, worktree: Path, side: str, code: str, python: str = sys.executable
) -> list[str]:
    """Run ``code`` in a process with ``site`` on its path, turned to ``side`` as workers are.

    Returns the lines it printed and then, after ``--``, why nothing is proven.
    """
    trees = trees_of(repository.top, worktree, side)
    cwd = repository.top if side == "head" else worktree
    files = SessionFiles(repository.top.parent / side)
    files.forget()
    script = (
        "import site, sys\n"
        f"site.addsitedir({str(repository.site)!r})\n"
        "import msgspec\n"
        "from pytest_tokbudget.records.launch import Trees, WorkerSpec\n"
        f"trees = msgspec.json.decode({_json(trees)!r}, type=Trees)\n"
        "from pytest_tokbudget.entry.provenance import prepare\n"
        "spec = WorkerSpec(nodeid='', args=[], argv=[], cwd='', rootdir='', sys_path=[],\n"
        f"    result_path={str(files.result)!r},\n"
        "    progress_path='', session_index=0, job='', trees=trees)\n"
        "proof = prepare(spec)\n"
        f"{code}\n"
        "print('--')\n"
        "print('\\n'.join(proof()))\n"
    )
    done = subprocess.run(
        [python, "-c", script],
        cwd=cwd,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.returncode == 0, done.stderr.decode()
    return [line for line in done.stdout.decode().splitlines() if line]


def _json(trees: Trees) -> bytes:
    import msgspec

    return msgspec.json.encode(trees)
