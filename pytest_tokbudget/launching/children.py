"""Judges what child processes of a worker may have run instead of its own tree's code."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from ..records.launch import Trees
from .copies import Copy
from .opened import OpenedFiles
from .programs import Interpreter, Program, interpreter_of
from .trees import in_tree

_SHOWN_PROGRAMS = 3
_PROBE_S = 60
_PROBE = """
import importlib.util, json, sys
directory, *names = sys.argv[1:]
if directory and sys.path[:1] == [""]:
    sys.path[0] = directory
found = {}
for name in names:
    try:
        spec = importlib.util.find_spec(name)
    except Exception:
        continue
    if spec is not None:
        found[name] = [spec.origin or "", *(spec.submodule_search_locations or ())]
print(json.dumps(found))
"""


def places_of(programs: Iterable[Program]) -> list[str]:
    """Return the directories that the programs' Pythons import installed packages from."""
    places: dict[str, None] = {}
    for program in programs:
        python = interpreter_of(program)
        if python is not None:
            prefix = Path(python.file).parent.parent
            places |= dict.fromkeys(program.python_path())
            places |= dict.fromkeys(str(one) for one in prefix.glob("lib/python3*/site-packages"))
    return list(places)


def copies_run(
    trees: Trees, programs: Sequence[Program], copies: Iterable[Copy], files: OpenedFiles
) -> list[str]:
    """Return the copies that another process ran, or may have run unseen, a sentence each.

    A copy counts as run where a file of it was opened, also where no start of a program was seen:
    libraries start some without Python's knowledge.
    """
    opened = files.opened()
    started = f"started here: {_listed(programs)}" if programs else "no start of one was seen"
    found = []
    for copy in copies:
        if not any(_outside(one, trees) for one in (*copy.files, *copy.directories)):
            continue
        if copy in opened:
            what = (
                f"another process, such as a child of this side or the other, opened {opened[copy]}"
            )
        elif programs and (files.failure or not files.watches(copy)):
            why = files.failure or "it was not known when this process began"
            what = f"a child process may have run a file (none was watched: {why})"
        else:
            continue
        found.append(f"{what} of {copy.told()}, or uninstall it ({started})")
    return found


def _outside(path: str, trees: Trees) -> bool:
    return not any(in_tree(path, one, trees.kept) for one in (trees.head, trees.ref))


def _listed(programs: Iterable[Program]) -> str:
    """The commands, those that run Python first."""
    ordered = sorted(programs, key=lambda one: interpreter_of(one) is None)
    told = list(dict.fromkeys(one.told() for one in ordered))
    more = [f"{len(told) - _SHOWN_PROGRAMS} more"] if len(told) > _SHOWN_PROGRAMS else []
    return "; ".join([*told[:_SHOWN_PROGRAMS], *more])


def heads_code_run(
    trees: Trees, programs: Iterable[Program], passed_on: Collection[str], names: Collection[str]
) -> list[str]:
    """Return the programs of a worker at the ref whose Python would import HEAD's tree.

    Those are started without ``passed_on``, the ``PYTHONPATH`` of this process, or told to ignore
    it; then an editable install counts again. ``names`` are the packages and modules in question.
    """
    found = []
    asked: dict[tuple[object, ...], str] = {}
    for program in programs:
        python = interpreter_of(program)
        if python is None or _obeys(program, python, passed_on):
            continue
        question = (python, program.cwd, program.pythonpath, program.path)
        if question not in asked:
            asked[question] = _imported_from_head(trees, program, python, names)
        wrong = asked[question]
        if wrong:
            found.append(
                f"{program.told()} {wrong}: start it with this process's PYTHONPATH "
                "(env={**os.environ, …}), without -I and -E"
            )
    return found


def _obeys(program: Program, python: Interpreter, passed_on: Collection[str]) -> bool:
    given = {os.path.realpath(one) for one in program.python_path()}
    flags = [one for one in python.flags if one[:2] not in ("--", "-W", "-X")]
    return given.issuperset(passed_on) and not any({"I", "E"} & set(one) for one in flags)


def _imported_from_head(
    trees: Trees, program: Program, python: Interpreter, names: Collection[str]
) -> str:
    """Ask the interpreter itself, started in the same way."""
    try:
        done = subprocess.run(
            [python.file, *python.flags, "-c", _PROBE, python.directory, *sorted(names)],
            cwd=program.cwd,
            env={**os.environ, "PATH": program.path, "PYTHONPATH": program.pythonpath},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_S,
            check=True,
        )
        found: dict[str, list[str]] = json.loads(done.stdout or "{}")
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return f"may import the tree under test; that could not be tried ({error})"
    for name, paths in found.items():
        wrong = [one for one in paths if one and in_tree(one, trees.head, trees.kept)]
        if wrong:
            return f"would import {name} from the tree under test ({wrong[0]})"
    return ""
