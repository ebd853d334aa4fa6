"""What a command runs, told from its words."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pytest_tokbudget.launching.programs import Interpreter, interpreter_of, program_of

EXE = sys.executable
GIVEN = {"PATH": os.defpath, "PYTHONPATH": "a:/b"}


def found(*command: object, path: str = os.defpath) -> Interpreter | None:
    return interpreter_of(program_of(command, "/", {**GIVEN, "PATH": path}, {}))


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        (("-m", "proj", "-I"), ()),
        (("-I", "-m", "proj"), ("-I",)),
        (("-c", "pass"), ()),
        (("-Im", "proj"), ("-I",)),
        (("-uW", "error", "-Xutf8", "-c", "pass"), ("-uW", "error", "-Xutf8")),
        (("-Wdefault::ImportWarning", "-E", "-mproj"), ("-Wdefault::ImportWarning", "-E")),
        (("-X", "dev", "-B", "-c", "pass"), ("-X", "dev", "-B")),
        (("-",), ()),
    ],
)
def test_flags_of_an_interpreter(command: tuple[str, ...], flags: tuple[str, ...]) -> None:
    interpreter = found(EXE, *command)

    assert interpreter is not None
    assert interpreter.file == EXE
    assert interpreter.flags == flags


@pytest.mark.parametrize(
    "command",
    [
        (b"/bin/sh", b"-c", f"cd /tmp && {EXE} -E -m proj; true".encode()),
        ("/usr/bin/env", "A=1", EXE, "-E", "x.py"),
        ("timeout", "9", EXE, "-E", "x.py"),
        ("/bin/bash", "-ec", f"A=1 {EXE} -E x.py"),
        (Path(EXE), "-E", "x.py"),
    ],
)
def test_an_interpreter_that_another_program_starts(command: tuple[object, ...]) -> None:
    interpreter = found(*command)

    assert interpreter is not None
    assert (interpreter.file, interpreter.flags) == (EXE, ("-E",))


@pytest.mark.parametrize(
    "first",
    [f"#!{EXE} -s\n", "#!/usr/bin/env python3\n", f"#!/bin/sh\n'''exec' {EXE} \"$0\" \"$@\"\n"],
)
def test_a_script(tmp_path: Path, first: str) -> None:
    script = tmp_path / "train"
    script.write_text(first)
    script.chmod(0o755)
    path = f"{tmp_path}:{Path(EXE).parent}"

    interpreter = found("train", "--fast", path=path)

    assert interpreter is not None
    assert Path(interpreter.file).parent == Path(EXE).parent
    assert interpreter.directory == str(tmp_path)


@pytest.mark.parametrize(
    "command",
    [("git", "status"), ("/bin/sh", "-c", "echo 'no end"), ("",), ("no-such-program",)],
)
def test_other_programs(command: tuple[str, ...]) -> None:
    assert found(*command) is None


def test_what_a_program_gets() -> None:
    told = program_of(["x", 1], "sub", [b"PYTHONPATH=a:/b"], {"PYTHONPATH": "/c"})
    inherits = program_of(["x"], None, None, {"PYTHONPATH": "/c"})

    assert told.python_path() == [f"{Path.cwd()}/sub/a", "/b"]
    assert inherits.python_path() == ["/c"]
    assert told.told() == "x 1"
    assert program_of(["x", "y" * 300], None, {}, {}).told().endswith("y …")
