"""The rooms keep to what docs/design.md lets them import."""

from __future__ import annotations

import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_tokbudget

PACKAGE = Path(pytest_tokbudget.__file__).parent
PURE_ROOMS = ("records", "analysis", "judging", "storing", "reporting")
HEAVY = ("torch", "numpy", "scipy", "pynvml", "rich")

IMPORT_ROOM = """
import importlib, json, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
"""


def _imported_by(*modules: str) -> set[str]:
    """Top-level modules in ``sys.modules`` of a fresh process that imported ``modules``."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ROOM, *modules], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("room", PURE_ROOMS)
def test_a_pure_room_imports_neither_pytest_nor_torch_nor_pynvml(room: str) -> None:
    modules = [
        f"pytest_tokbudget.{room}.{one.name}" for one in pkgutil.iter_modules([PACKAGE / room])
    ]

    imported = _imported_by(f"pytest_tokbudget.{room}", *modules)

    assert not imported & {"pytest", "_pytest", "torch", "pynvml"}


def test_the_plugin_loads_nothing_heavy() -> None:
    assert not _imported_by("pytest_tokbudget.plugin") & {*HEAVY, "msgspec", "psutil"}


def test_a_run_without_the_flag_loads_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(
        "import sys\n"
        "def test_measured(tokbudget): raise AssertionError\n"
        "def test_modules():\n"
        f"    assert not set({HEAVY!r}) & set(sys.modules)\n"
    )

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "pytest_tokbudget.plugin"],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "1 passed, 1 skipped" in done.stdout, done.stdout + done.stderr


def test_every_room_has_its_import_rules() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} - {"entry"}

    assert rooms == {path.parent.name for path in PACKAGE.glob("*/ruff.toml")}
