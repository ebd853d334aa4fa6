"""Virtual environments that the project is really installed into."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PIP = ("-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation")


@dataclass(frozen=True)
class Environment:
    """One that also sees what the environment of the tests has."""

    top: Path

    @classmethod
    def create(cls, top: Path) -> Environment:
        run(sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(top))
        environment = cls(top)
        there = sysconfig.get_path("purelib")
        (environment.site / "tests.pth").write_text(f"{there}\n{ROOT}\n")
        return environment

    @property
    def python(self) -> str:
        return str(self.top / "bin" / "python")

    @property
    def site(self) -> Path:
        (site,) = self.top.glob("lib/python3*/site-packages")
        return site

    def install(self, project: Path, *args: str) -> None:
        """``pip install ARGS`` in the directory of ``project``."""
        run(self.python, *PIP, *args, cwd=project)


def run(*command: str, cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
