"""Notes which programs a worker of an A/B starts, and what its forked children import.

A forked child has this process's finders and redirection, but nobody sees its modules: it leaves
what it imports, maps, starts and may not import in a file, a line each, when it does so, for it may
be killed at any time.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
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
        """Begin. It cannot be taken back.

        No audit hook here: it would slow each ``id()`` of what is measured.
        """
        os.register_at_fork(
            before=lambda: self._note_program(FORKED), after_in_child=self._begin_in_child
        )
        _wrap_starts(self._note_program)

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
        if self._known is None:
            known = self._known = set(sys.modules)

            # Called for every audit event of every thread, each id() among them: a plain function
            # with one look at the event's name costs 0.2 µs there, a method 0.5 µs.
            def hook(event: str, arguments: tuple[Any, ...]) -> None:
                if event in _IMPORTS:
                    self._note_import(event, arguments, known)

            sys.addaudithook(hook)

    def _leave(self, note: Note) -> None:
        # By its path: a child may have closed all descriptors, and use their numbers again.
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, msgspec.json.encode(note) + b"\n")
        finally:
            os.close(descriptor)

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
        if program in self._programs or len(self._programs) >= MOST_PROGRAMS or _is_ours():
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


_Take = Callable[[Program], None]
_IMPORTS = frozenset(("exec", "import", "ctypes.dlopen"))


def _wrap_starts(take: _Take) -> None:
    """Let ``take`` know of each program that Python code starts, before it starts."""
    import _posixsubprocess

    fork_exec = _wrapped(_posixsubprocess.fork_exec, take, _fork_exec)
    _posixsubprocess.fork_exec = fork_exec
    if hasattr(subprocess, "_fork_exec"):  # since Python 3.11 it has that name of its own
        vars(subprocess)["_fork_exec"] = fork_exec
    os.system = _wrapped(os.system, take, _system)
    for name in ("execv", "execve", "posix_spawn", "posix_spawnp"):
        if hasattr(os, name):
            setattr(os, name, _wrapped(getattr(os, name), take, _exec))


def _wrapped(
    start: Callable[..., Any], take: _Take, program: Callable[..., Program]
) -> Callable[..., Any]:
    @functools.wraps(start)
    def noted(*arguments: Any, **options: Any) -> Any:
        try:
            started = program(*arguments, **options)
        except (IndexError, TypeError, ValueError):
            return start(*arguments, **options)  # it raises what is wrong with its arguments
        take(started)
        return start(*arguments, **options)

    return noted


def _fork_exec(command: Iterable[object], files: Sequence[bytes], *more: Any) -> Program:
    """``files`` are the places where the program is looked for."""
    _, _, cwd, environment, *_ = more
    file = next((one for one in files if os.path.exists(one)), files[0])  # noqa: PTH110
    return program_of([file, *list(command)[1:]], cwd, environment, os.environ)


def _exec(path: object, argv: Sequence[object], env: object = None, **_: Any) -> Program:
    return program_of([path, *argv[1:]], None, env, os.environ)


def _system(command: object) -> Program:
    return program_of(["/bin/sh", "-c", command], None, None, os.environ)


_OWN_FILES = str(PACKAGE)


def _is_ours() -> bool:
    """Whether it is code of this package that calls ``subprocess``, as the samplers' does."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename in (subprocess.__file__, __file__):
        frame = frame.f_back
    return frame is not None and is_below(frame.f_code.co_filename, _OWN_FILES)
