"""Programs that a worker starts: what a call that starts one says, and which Python it runs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ..records.base import Record

_SHOWN_CHARACTERS = 200
_PYTHON = re.compile(r"python[\d.]*t?")
_WITH_ARGUMENT = "WX"


class Program(Record, frozen=True, kw_only=True):
    """A started program. ``command`` begins with the file that was run, as it was named."""

    command: tuple[str, ...]
    cwd: str = ""
    pythonpath: str = ""
    path: str = ""

    def told(self) -> str:
        """Return the command as a shell would take it, shortened."""
        text = " ".join(shlex.join(self.command).split())
        return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + " …"

    def python_path(self) -> list[str]:
        """The directories of its ``PYTHONPATH``, as absolute paths."""
        given = [one for one in self.pythonpath.split(os.pathsep) if one]
        return [os.path.normpath(os.path.join(self.cwd, one)) for one in given]  # noqa: PTH118

    def words(self) -> Iterator[str]:
        """The words of the command, those that it hands to a shell (``sh -c``) among them."""
        shell = not _PYTHON.fullmatch(Path(self.command[0]).name)
        for before, word in zip(("", *self.command), self.command):
            if shell and re.fullmatch(r"-\w*c", before):
                yield from _split(word)
            else:
                yield word


class Interpreter(NamedTuple):
    """A Python that a program runs: its file, its own flags, the script's directory if any."""

    file: str
    flags: tuple[str, ...] = ()
    directory: str = ""


def program_of(
    command: Iterable[object], cwd: object, environment: object, inherited: Mapping[str, str]
) -> Program:
    """Return the program that is about to start; ``inherited`` is this process's environment.

    ``environment`` is a mapping, or a list of ``NAME=value``; None where it is inherited.
    """
    given = inherited if environment is None else _environment(environment)
    return Program(
        command=tuple(_text(word) for word in command),
        cwd=os.path.join(_here(), "" if cwd is None else _text(cwd)),  # noqa: PTH118
        pythonpath=given.get("PYTHONPATH", ""),
        path=given.get("PATH", os.defpath),
    )


def interpreter_of(program: Program) -> Interpreter | None:
    """Return the first Python that a word of the command names, itself or by a script's ``#!``."""
    words = list(program.words())
    for index, word in enumerate(words):
        file = shutil.which(word, path=program.path) if word else None
        if file is None:
            continue
        file = os.path.join(program.cwd, file)  # noqa: PTH118
        if _is_python(file):
            return _with_flags(file, words[index + 1 :], program.cwd)
        (named, *flags) = _named_by_script(file, program.path) or [""]
        if _is_python(named):
            return Interpreter(named, tuple(flags), os.path.dirname(os.path.realpath(file)))  # noqa: PTH120
    return None


def _here() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:
        return os.sep  # it was removed


def _text(value: object) -> str:
    if isinstance(value, (str, bytes, os.PathLike)):
        return os.fsdecode(value)
    return str(value)


def _environment(given: object) -> dict[str, str]:
    if isinstance(given, Mapping):
        return {_text(name): _text(value) for name, value in given.items()}
    pairs = [_text(one).partition("=") for one in given] if isinstance(given, Iterable) else []
    return {name: value for name, _, value in pairs}


def _split(command: str) -> list[str]:
    try:
        return list(shlex.shlex(command, posix=True, punctuation_chars=True))
    except ValueError:
        return command.split()


def _is_python(file: str) -> bool:
    return any(_PYTHON.fullmatch(Path(one).name) for one in (file, os.path.realpath(file)))


def _named_by_script(file: str, path: str) -> list[str]:
    """The interpreter in the first line of a script, with its flags; ``/usr/bin/env`` is looked up.

    Installers write a line of ``sh`` where the interpreter's path is too long for the kernel.
    """
    try:
        with open(file, "rb") as script:  # noqa: PTH123
            first, second = os.fsdecode(script.readline(4096)), os.fsdecode(script.readline(4096))
    except OSError:
        return []
    if first == "#!/bin/sh\n" and second.startswith("'''exec' "):
        return shlex.split(second.removeprefix("'''exec' "))[:1]
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    if words and Path(words[0]).name == "env":
        words = [one for one in words[1:] if not one.startswith("-") and "=" not in one]
        words[:1] = [shutil.which(one, path=path) or "" for one in words[:1]]
    return words


def _with_flags(file: str, words: list[str], cwd: str) -> Interpreter:
    flags: list[str] = []
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word == "-":
            script = os.path.realpath(os.path.join(cwd, word))  # noqa: PTH118
            return Interpreter(file, tuple(flags), os.path.dirname(script))  # noqa: PTH120
        ends = next((i for i, letter in enumerate(word) if i and letter in "cm"), 0)
        option = next((i for i, letter in enumerate(word) if letter in _WITH_ARGUMENT), 0)
        if ends and not word.startswith("--") and not 0 < option < ends:
            flags += ["-" + word[1:ends]] if ends > 1 else []
            break
        flags.append(word)
        if option == len(word) - 1 and not word.startswith("--"):
            flags.append(next(rest, ""))
    return Interpreter(file, tuple(flags))
