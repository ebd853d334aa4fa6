"""Native frames of a recorded program (``tests/data/native``), and of stacks made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_tokbudget.analysis.frame_kinds import OURS
from pytest_tokbudget.analysis.native_frames import (
    INTERPRETER,
    NO_SYMBOL,
    PYTHON_ITSELF,
    NativeTable,
    native_table,
)
from pytest_tokbudget.analysis.speedscope import (
    SpeedFrame,
    Speedscope,
    ThreadSamples,
    read_speedscope,
)
from pytest_tokbudget.errors import UnreadableError

RECORDED = Path(__file__).parents[1] / "data" / "native" / "busy.json"
CPU_S = {12491: 3.642, 12492: 2.958, 12493: 0.902, 12494: 0.007, 12495: 0.869}
"""Of the program's threads, as the kernel counted it over the recording."""


def frame(text: str) -> SpeedFrame:
    """``"name@file:line"``; the line of native code is 0."""
    name, _, place = text.partition("@")
    file, _, line = place.partition(":")
    return SpeedFrame(name, file, int(line or 0))


def table_of(**stacks: list[str]) -> NativeTable:
    """A thread for each name, with one sample for each of its stacks (``"root leaf"``)."""
    texts = sorted({one for each in stacks.values() for stack in each for one in stack.split()})
    threads = [
        ThreadSamples(name, at, [[texts.index(one) for one in stack.split()] for stack in each])
        for at, (name, each) in enumerate(stacks.items(), start=1)
    ]
    found = Speedscope([frame(one) for one in texts], threads)
    native_ids = range(1, len(stacks))
    used_s, system_s = dict.fromkeys(native_ids, 1.0), dict.fromkeys(native_ids, 0.1)
    return native_table(found, used_s, system_s, 10.0, "/app")


def test_a_recorded_program_is_told_by_its_c_functions() -> None:
    samples = read_speedscope(RECORDED.read_bytes())
    found = native_table(samples, CPU_S, {}, 10.0, "/home/someone/app")

    rows = [(one.function, one.library, one.caller) for one in found.frames[:3]]
    assert rows == [
        ("deflate", "libz.so.1.2.13", "compress"),
        ("SHA256_Update", "libcrypto.so.3", "digest"),
        (PYTHON_ITSELF, INTERPRETER, "order"),
    ]
    first = found.frames[0]
    assert (first.file, first.line, first.threads) == ("busy.py", 25, ['a; (b) "c"'])
    # The idle thread had one sample, a hundredth of all, and no hundredth of the CPU time.
    assert {"idle", "tokbudget-ours"}.isdisjoint(one for row in found.frames for one in row.threads)
    assert found.cpu_s == pytest.approx(3.642 + 2.958 + 0.902)
    assert sum(one.share for one in found.frames) == pytest.approx(1, abs=0.01)


def test_what_has_no_symbol_counts_for_the_named_function_of_its_library() -> None:
    found = table_of(
        a=["f@/app/a.py:3 run@/l/liba.so 0x1@/l/liba.so 0x2@/l/liba.so"] * 2
        + ["f@/app/a.py:4 run@/l/liba.so 0x3@/l/libc.so.6", "f@/app/a.py:4 0x4@/l/libc.so.6"],
        last=[],
    )

    rows = [(one.function, one.library, one.samples, one.line) for one in found.frames]
    assert rows == [("run", "liba.so", 2, 3), (NO_SYMBOL, "libc.so.6", 2, 4)]


def test_a_library_in_between_is_told_with_the_user_who_called_it() -> None:
    library = "/usr/lib/python3.11/site-packages/numpy/core.py:9"
    found = table_of(a=[f"f@/app/a.py:3 sort@{library} qsort@/l/np.so"], last=[])

    (row,) = found.frames
    assert (row.caller, row.file, row.line) == ("sort", "numpy/core.py", 9)
    assert row.called_from == "f (a.py:3)"


def test_waits_our_own_code_and_our_own_threads_are_left_out() -> None:
    lock = "f@/app/a.py:3 pthread_mutex_lock@/l/libc.so.6"
    wait = "f@/app/a.py:3 pthread_cond_timedwait@/l/libc.so.6 0x1@/l/libc.so.6"
    found = table_of(
        a=[
            wait,
            lock,
            "f@/app/a.py:3 time_sleep@/l/libpython3.11.so.1.0 clock_nanosleep@/l/libc.so.6",
        ],
        b=[f"f@/app/a.py:3 mark@{OURS}measuring/recorder.py:9 memcpy@/l/libc.so.6"],
        c=[f"begin@{OURS}evidence/native.py:9 run@/usr/lib/python3.11/subprocess.py:9"],
        last=[],
        **{"tokbudget-beacon": ["f@/app/a.py:3"]},
    )

    assert found == NativeTable([], 0, 0.0)


def test_cpu_time_comes_from_the_clock_and_is_shared_out_by_samples() -> None:
    busy = ["f@/app/a.py:3 g@/b/g.c:7", "f@/app/a.py:3 g@/b/g.c:8", "f@/app/a.py:3"]
    found = table_of(a=busy, b=[], ended=["h@/app/a.py:9"] * 5)

    rows = [(one.function, one.library, one.caller, round(one.cpu_s, 3)) for one in found.frames]
    assert rows == [
        ("g", "g.c", "f", 0.667),
        (PYTHON_ITSELF, INTERPRETER, "h", 0.5),
        (PYTHON_ITSELF, INTERPRETER, "f", 0.333),
    ]


@pytest.mark.parametrize(
    "call",
    [
        "clock_gettime@/l/libc.so.6 0x7f@[vdso]",
        "sock_recv@/l/libpython3.11.so.1.0 __libc_recvmsg@/l/libc.so.6 0x7f@/l/libc.so.6",
    ],
)
def test_a_call_that_sleeping_threads_are_caught_at_gets_no_more_than_the_kernels_time(
    call: str,
) -> None:
    found = table_of(a=["f@/app/a.py:3"] * 6 + [f"f@/app/a.py:4 {call}"] * 4, last=[])

    rows = [(one.library, round(one.cpu_s, 3), one.samples) for one in found.frames]
    assert rows == [(INTERPRETER, 0.9, 6), (rows[1][0], 0.1, 1)]


def test_a_thread_that_only_calls_the_kernel_has_all_its_time_there() -> None:
    found = table_of(a=["f@/app/a.py:3 read@/l/libc.so.6"] * 5, last=[])

    (row,) = found.frames
    assert (row.function, round(row.cpu_s, 3)) == ("read", 1.0)


def test_a_thread_that_was_only_woken_adds_no_samples() -> None:
    idle = ["f@/app/a.py:3 accept@/l/libc.so.6"] * 90
    samples = Speedscope(
        [frame(one) for one in idle[0].split()], [ThreadSamples("idle", 1, [[0, 1]] * 90)]
    )

    assert native_table(samples, {1: 0.01}, {1: 0.0}, 10.0).samples == 0


@pytest.mark.parametrize("data", [b"", b"[]", b'{"profiles": []}', b'{"profiles":'])
def test_a_torn_file_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableError):
        read_speedscope(data)
