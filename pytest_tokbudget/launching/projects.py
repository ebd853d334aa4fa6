"""The distributions that a tree's own project files declare."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

# The tables that name a distribution; a setup.py is searched as a whole.
_TABLES = {
    "pyproject.toml": ("project", "tool.poetry", "tool.flit.metadata"),
    "setup.cfg": ("metadata",),
    "Cargo.toml": ("package",),
    "setup.py": (),
}
_VALUE = r"\s*[=:]\s*[\"']?([\w.-]+)"


def normal_name(name: str) -> str:
    """Return a distribution's name as PEP 503 normalizes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared_projects(top: Path, files: Iterable[str]) -> dict[str, str]:
    """Return the project files among ``files`` (relative to ``top``) by the names they declare.

    Names are normalized; of two files that declare the same one, the file nearer the top counts.
    """
    projects: dict[str, str] = {}
    for file in sorted(files, key=lambda one: one.count("/")):
        tables = _TABLES.get(PurePosixPath(file).name)
        if tables is None:
            continue
        try:
            text = (top / file).read_text(errors="replace")
        except OSError:
            continue
        for name in _in_tables(text, tables) if tables else _in_setup(text):
            projects.setdefault(normal_name(name), file)
    return projects


def _in_tables(text: str, tables: Iterable[str]) -> list[str]:
    names = []
    for table in tables:
        head = rf"^\[{re.escape(table)}\][ \t]*(?:#.*)?$"
        for body in re.findall(rf"{head}((?:\n(?!\[).*)*)", text, re.MULTILINE):
            names += re.findall(rf"^[ \t]*(?:name|dist-name){_VALUE}", body, re.MULTILINE)
    return names


def _in_setup(text: str) -> list[str]:
    """What ``name=`` is given, as a text or as a variable that holds one."""
    names = re.findall(r"\bname[\"']?\s*[=:]\s*[\"']([\w.-]+)[\"']", text)
    for variable in re.findall(r"\bname\s*=\s*([A-Za-z_]\w*)", text):
        names += re.findall(rf"^\s*{variable}\b[^=\n]*=\s*[\"']([\w.-]+)[\"']", text, re.MULTILINE)
    return names
