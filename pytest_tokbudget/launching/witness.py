"""Notes which programs a worker of an A/B starts, and what its forked children import.

A forked child has this process's finders and redirection, but nobody sees its modules: it leaves
what it imports, maps, starts and may not import in a file, a line each, when it does so, for it may
be killed at any time.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from ..errors import LaunchError
from ..records.base import Record
from .programs import Program, program_of
from .trees import PACKAGE, is_below

FORKED = Program(command=("os.fork()",))
MOST_PROGRAMS = 1000
"""Programs that one process notes; a step may start one with other arguments every time."""


class Note(Record, frozen=True, kw_only=True):
    """One line of the file: a module by name and paths, a library by its path, a fault's text."""

    module: str = ""
    paths: list[str] = []  # noqa: RUF012 - msgspec copies it
    library: str = ""
    fault: str = ""
    program: Program | None = None


class Witness:
    """What this process and its forked children did, from ``install`` on."""

    def __init__(self, file: Path) -> None:
        """``file`` takes the children's notes."""
        self._file = file
        self._programs: dict[Program, None] = {}
        self._faults: list[str] = []
        self._known: set[str] | None = None
        """In a forked child: the modules whose names need no note."""

    def install(self) -> None:
        """Begin. An audit hook cannot be taken back."""

        # Called for every audit event of every thread, each id() among them: a plain function with
        # one look at the event's name costs 0.2 µs there, a method 0.5 µs.
        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event in _EVENTS:
                self._take(event, arguments)

        os.register_at_fork(after_in_child=self._begin_in_child)
        sys.addaudithook(hook)
        _audit_fork_exec()

    def fault(self, text: str) -> None:
        """Note what an import must not do here, in whichever process."""
        if text not in self._faults:
            self._faults.append(text)
            if self._known is not None:
                self._leave(Note(fault=text))

    def notes(self) -> list[Note]:
        """All so far, this process's faults and programs first. Raises LaunchError."""
        own = [Note(fault=one) for one in self._faults]
        own += [Note(program=one) for one in list(self._programs)]
        try:
            lines = self._file.read_bytes().splitlines() if self._file.exists() else []
            return own + [msgspec.json.decode(line, type=Note) for line in lines]
        except (OSError, msgspec.MsgspecError) as error:
            raise LaunchError(f"what forked children noted cannot be read: {error}") from error

    def _begin_in_child(self) -> None:
        self._known = set(sys.modules)

    def _leave(self, note: Note) -> None:
        # By its path: a child may have closed all descriptors, and use their numbers again.
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, msgspec.json.encode(note) + b"\n")
        finally:
            os.close(descriptor)

    def _take(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _IMPORTS:
            if self._known is not None:
                self._note_import(event, arguments, self._known)
        elif not _is_ours():
            self._note_program(_STARTS[event](arguments))

    def _note_import(self, event: str, arguments: tuple[Any, ...], known: set[str]) -> None:
        if event == "ctypes.dlopen":
            if isinstance(arguments[0], str):
                self._leave(Note(library=os.path.realpath(arguments[0])))
            return
        if event == "import" and arguments[1] is not None:
            self._leave(Note(module=str(arguments[0]), paths=[str(arguments[1])]))
        # A module is the newest of all when its code is about to run.
        for name in reversed(list(sys.modules)):
            if name in known:
                break
            known.add(name)
            self._leave(Note(module=name, paths=paths_of(sys.modules.get(name))))

    def _note_program(self, program: Program) -> None:
        if program in self._programs or len(self._programs) >= MOST_PROGRAMS:
            return
        self._programs[program] = None
        if self._known is not None:
            self._leave(Note(program=program))


def paths_of(module: object) -> list[str]:
    """Return a module's file, then the directories of its portions."""
    try:
        file = getattr(module, "__file__", None)
        portions = [str(one) for one in getattr(module, "__path__", None) or ()]
    except Exception:  # noqa: BLE001 - modules may be anything, lazy proxies too
        return []
    return ([file] if isinstance(file, str) else []) + portions


def _popen(arguments: tuple[Any, ...]) -> Program:
    executable, command, cwd, environment = arguments
    return program_of([executable, *command[1:]], cwd, environment, os.environ)


def _exec(arguments: tuple[Any, ...]) -> Program:
    file, command, environment = arguments
    return program_of([file, *command[1:]], None, environment, os.environ)


def _system(arguments: tuple[Any, ...]) -> Program:
    return program_of(["/bin/sh", "-c", arguments[0]], None, None, os.environ)


_FORK_EXEC = "pytest_tokbudget.fork_exec"
_STARTS: dict[str, Callable[[tuple[Any, ...]], Program]] = {
    "subprocess.Popen": _popen,
    "os.exec": _exec,
    "os.posix_spawn": _exec,
    "os.system": _system,
    "os.fork": lambda _: FORKED,
    "os.forkpty": lambda _: FORKED,
    _FORK_EXEC: _popen,
}
_IMPORTS = ("exec", "import", "ctypes.dlopen")
_EVENTS = frozenset({*_IMPORTS, *_STARTS})


def _audit_fork_exec() -> None:
    """Raise an event where multiprocessing starts an interpreter: CPython has none there."""
    import _posixsubprocess

    fork_exec = _posixsubprocess.fork_exec

    def audited(*arguments: Any) -> int:
        command, files, _, _, cwd, environment, *_ = arguments
        sys.audit(_FORK_EXEC, files[0], command, cwd, environment)
        return fork_exec(*arguments)

    _posixsubprocess.fork_exec = audited


_OWN_FILES = str(PACKAGE)


def _is_ours() -> bool:
    """Whether it is code of this package that calls ``subprocess``, as the samplers' does."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename in (subprocess.__file__, __file__):
        frame = frame.f_back
    return frame is not None and is_below(frame.f_code.co_filename, _OWN_FILES)
