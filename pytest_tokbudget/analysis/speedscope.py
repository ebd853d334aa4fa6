"""py-spy's speedscope file → every sample of every thread.

Unlike the chrometrace, which keeps only changes, it lacks the moments but holds each sample, so it
can be counted where threads that idle are not sampled.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from ..errors import UnreadableError

_THREAD = re.compile(r"(?:Process \S+ )?Thread (\S+) \"(.*)\"", re.DOTALL)


class SpeedFrame(msgspec.Struct, frozen=True):
    """A frame: of Python at a file and line; of native code without a line, ``file`` its library,
    or with the line of its source where that is known."""

    name: str
    file: str | None = None
    line: int | None = None


class _Profile(msgspec.Struct):
    name: str
    samples: list[list[int]]


class _Shared(msgspec.Struct):
    frames: list[SpeedFrame]


class _File(msgspec.Struct):
    profiles: list[_Profile]
    shared: _Shared


class ThreadSamples(NamedTuple):
    """A thread's name, native id (0: not said) and samples: indices into the frames, root first."""

    name: str
    native_id: int
    samples: list[list[int]]


class Speedscope(NamedTuple):
    """All frames, and the samples of each thread."""

    frames: list[SpeedFrame]
    threads: list[ThreadSamples]


def read_speedscope(data: bytes) -> Speedscope:
    """Read one file. Raises ``UnreadableError`` for what is none (a torn one too)."""
    try:
        found = msgspec.json.decode(data, type=_File)
    except msgspec.DecodeError as error:
        raise UnreadableError(f"py-spy's samples cannot be read: {error}") from error
    threads = []
    for one in found.profiles:
        match = _THREAD.fullmatch(one.name)
        native_id, name = (match[1], match[2]) if match else ("", one.name)
        number = int(native_id) if native_id.isdecimal() else 0
        threads.append(ThreadSamples(name, number, one.samples))
    return Speedscope(found.shared.frames, threads)
