"""Native stacks → what ran most in C, C++, Rust or Cython, by the Python function that called it.

On a CPU or not is never asked of the sampler, whose own pause wakes threads: the CPU time of each
thread comes from its clock, and its samples only share that out. Those in a wait of the C library
get none, and those in its system calls no more than the thread's time in the kernel: a thread that
sleeps much is mostly caught at a call, or blocks in one (``read``, ``accept``) when it is woken.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import takewhile
from math import fsum
from pathlib import PurePosixPath
from typing import NamedTuple

from ..records.result import NativeFrameResult
from .frame_kinds import INSTRUMENTS, OURS, is_library_code, short_path
from .sampled_stacks import OUR_THREADS
from .speedscope import SpeedFrame, Speedscope

MOST_FRAMES = 20
LEAST_SHARE = 0.002
NO_SYMBOL = "no symbol"
INTERPRETER = "interpreter"
PYTHON_ITSELF = "bytecode and built-ins"
"""py-spy leaves the interpreter's own functions out, but for a few that block."""

_ADDRESS = re.compile(r"0x[0-9a-f]+")
_INTERPRETER = re.compile(r"libpython\d.*|python(\d(\.\d+)?t?)?")
_NATIVE_SOURCE = re.compile(r".*\.(?:[cChH]|cc|cpp|cxx|hh|hpp|hxx|cuh?|inl|inc|tcc|rs|pyx|s|S)")
_WAIT = re.compile(
    r"_*(?:pthread_cond_\w*wait|\w*futex\w*wait\w*|(?:clock_)?nanosleep|epoll_p?wait2?|p?poll"
    r"|p?select|sem_\w*wait|lll_lock_wait\w*|pthread_(?:mutex|rwlock)_\w*lock)"
)
_CALL = re.compile(
    r"_*(?:libc_|GI_)*(?:p?(?:read|write)v?(?:64)?|(?:recv|send)(?:from|to|m?msg|file)?(?:64)?"
    r"|accept4?|connect|open(?:at)?(?:64)?|close|ioctl|fcntl(?:64)?|wait(?:pid|4|id)|f(?:data)?sync"
    r"|m(?:map(?:64)?|unmap|advise|protect)|clock_gettime|gettimeofday|getp?pid|sched_yield|syscall)"
)
"""Functions of the C library that do little else than enter the kernel."""


class NativeTable(NamedTuple):
    """The foremost rows, most CPU time first, the CPU seconds that their shares are of, and the
    samples of all rows that have a share worth telling."""

    frames: list[NativeFrameResult]
    samples: int
    cpu_s: float


class _Key(NamedTuple):
    function: str
    library: str
    caller: str | None = None
    file: str | None = None
    called_from: str | None = None


class _Row:
    def __init__(self) -> None:
        self.lines: Counter[int | None] = Counter()
        self.samples = 0
        self.cpu_s: dict[str, float] = defaultdict(float)

    @property
    def total_s(self) -> float:
        return fsum(self.cpu_s.values())


def native_table(
    found: Speedscope,
    cpu_s: Mapping[int, float],
    system_s: Mapping[int, float],
    rate_hz: float,
    rootdir: str = "",
) -> NativeTable:
    """Tabulate ``found``; our own threads and code, and waits, are left out.

    ``cpu_s`` is what each thread used, by native id, ``system_s`` the part of it in the kernel. A
    thread that ended meanwhile has none: its samples then count one period of ``rate_hz`` each.
    A row counts no more samples than its CPU time has periods.
    """
    rows: dict[_Key, _Row] = defaultdict(_Row)
    for thread in found.threads:
        if thread.name.startswith(OUR_THREADS):
            continue
        stacks = Counter(map(tuple, thread.samples))
        placed = {one: _placed([found.frames[at] for at in one[::-1]], rootdir) for one in stacks}
        ran = {one: count for one, count in stacks.items() if placed[one] is not None}
        calls = {one for one in ran if _in_call([found.frames[at] for at in one[::-1]])}
        used_s = cpu_s.get(thread.native_id, sum(ran.values()) / rate_hz)
        each_s = _each_s(ran, calls, used_s, system_s.get(thread.native_id, used_s))
        for stack, count in ran.items():
            if (place := placed[stack]) is not None:
                row = rows[place[0]]
                row.lines[place[1]] += count
                row.samples += count
                row.cpu_s[thread.name] += count * each_s[stack in calls]
    total_s = fsum(row.total_s for row in rows.values())
    ranked = sorted(rows.items(), key=lambda one: -one[1].total_s)
    # An idle thread that the sampler woke has samples, and no CPU time to speak of.
    for row in rows.values():
        row.samples = min(row.samples, round(row.total_s * rate_hz))
    told = [
        _result(*one, total_s)
        for one in ranked
        if one[1].samples and one[1].total_s > LEAST_SHARE * total_s
    ]
    return NativeTable(told[:MOST_FRAMES], sum(one.samples for one in told), total_s)


def _each_s(
    ran: Mapping[tuple[int, ...], int],
    calls: set[tuple[int, ...]],
    used_s: float,
    system_s: float,
) -> tuple[float, float]:
    """CPU time of one sample outside of system calls, and of one inside."""
    inside = sum(ran[one] for one in calls)
    outside = sum(ran.values()) - inside
    if not outside:
        return 0.0, used_s / max(inside, 1)
    calls_s = min(used_s * inside / (inside + outside), system_s)
    return (used_s - calls_s) / outside, calls_s / max(inside, 1)


def _in_call(stack: Sequence[SpeedFrame]) -> bool:
    """Whether a stack, innermost frame first, ends in a system call, or in the kernel's own page of
    code for reading clocks."""
    within = list(takewhile(lambda one: not _is_python(one), stack))
    if not within:
        return False
    library = _library(within[0])
    return library == "[vdso]" or any(
        _CALL.fullmatch(one.name) for one in within if _library(one) == library
    )


def _result(key: _Key, row: _Row, total_s: float) -> NativeFrameResult:
    return NativeFrameResult(
        function=key.function,
        library=key.library,
        caller=key.caller,
        file=key.file,
        line=row.lines.most_common(1)[0][0],
        called_from=key.called_from,
        share=row.total_s / total_s,
        cpu_s=row.total_s,
        samples=row.samples,
        threads=sorted(row.cpu_s, key=lambda one: -row.cpu_s[one]),
    )


def _placed(stack: Sequence[SpeedFrame], rootdir: str) -> tuple[_Key, int | None] | None:
    """The row of a stack, innermost frame first, and its line; ``None`` for waits and ours."""
    python = [one for one in stack if _is_python(one)]
    caller = python[0] if python else None
    files = [one.file or "" for one in python]
    if not stack or any(one.startswith(INSTRUMENTS) for one in files):
        return None
    if files and files[0].startswith(OURS):
        return None
    function, library = PYTHON_ITSELF, INTERPRETER
    if stack[0] is not caller:
        library = _library(stack[0])
        within = [
            one.name
            for one in takewhile(lambda one: one is not caller, stack)
            if _library(one) == library
        ]
        if any(_WAIT.fullmatch(one) for one in within):
            return None
        # What has no symbol is mostly a static function of the named one that called it.
        function = next((one for one in within if not _ADDRESS.fullmatch(one)), NO_SYMBOL)
    if caller is None:
        return _Key(function, library), None
    user = next((one for one in python if not is_library_code(one.file or "")), caller)
    called_from = None
    if user is not caller:
        called_from = f"{user.name} ({short_path(user.file or '', rootdir)}:{user.line})"
    place = short_path(files[0], rootdir)
    return _Key(function, library, caller.name, place, called_from), caller.line


def _is_python(frame: SpeedFrame) -> bool:
    file = frame.file or ""
    if file.endswith(".py") or file.startswith("<"):
        return True
    return bool(frame.line) and not _NATIVE_SOURCE.fullmatch(file)


def _library(frame: SpeedFrame) -> str:
    name = PurePosixPath(frame.file or "").name
    if _INTERPRETER.fullmatch(name):
        return INTERPRETER
    return name if name not in ("", "?") else "unknown library"
