from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

from pytest_tokbudget.analysis.cpu_summary import (
    cpu_pct,
    hot_frames,
    summarize_cpu,
    thread_results,
)
from pytest_tokbudget.analysis.frame_kinds import (
    INSTRUMENTS,
    LOOPS,
    OURS,
    FrameKind,
    frame_kind,
    short_path,
)
from pytest_tokbudget.analysis.frames import StackTables, stack_tables
from pytest_tokbudget.records.cpu import CollectorPauses, CoreUse, CpuRecord, Interpreter
from tests.analysis.cpu_records import BEGIN_NS, ROUND_NS, clock_of, record_of, stacks_of

BUSY, WAITING = "main:1>spin:5", "main:1>get@/usr/lib/python3.11/queue.py:171"


def tables_of(record: CpuRecord) -> StackTables:
    tables = stack_tables(record, "/app")
    assert tables is not None
    return tables


def test_seconds_and_samples_are_those_of_the_rounds() -> None:
    tables = tables_of(record_of(stacks_of({"a": [BUSY] * 30 + ["main:1>other:2"] * 10})))
    first, second = tables.by_frame
    assert (first.function, first.file, first.line) == ("spin", "spin.py", 5)
    assert first.exclusive_s == pytest.approx(0.3)
    assert (first.samples, second.samples) == (30, 10)
    assert first.share == pytest.approx(0.75)
    assert [one.name for one in tables.by_root] == ["main (main.py)"]
    by_file = {one.name: one for one in tables.by_file}
    assert by_file["main.py"].inclusive_s == pytest.approx(0.4)
    assert by_file["main.py"].exclusive_s == 0.0


def test_the_clock_tells_a_cpu_from_a_wait_not_the_sampler() -> None:
    looks = {"a": [BUSY] * 20, "b": [BUSY] * 20}
    clocks = [clock_of(100, "a", [0, 100, 200]), clock_of(101, "b", [0, 0.2, 0.4])]
    tables = tables_of(record_of(stacks_of(looks), clocks))
    cpu = {one.name: one.cpu_s for one in tables.by_thread}
    assert cpu["a"] == pytest.approx(0.2)
    assert cpu["b"] == pytest.approx(0.0004)


def test_cpu_time_goes_to_frames_that_do_not_wait() -> None:
    looks = {"a": ([BUSY] * 5 + [WAITING] * 5) * 2}
    tables = tables_of(record_of(stacks_of(looks), [clock_of(100, "a", [0, 50, 100])]))
    cpu = {one.function: one.cpu_s for one in tables.by_frame}
    assert cpu == pytest.approx({"spin": 0.1, "get": 0.0})


def test_more_cpu_time_than_running_frames_hold_goes_to_the_others() -> None:
    looks = {"a": [BUSY] * 5 + [WAITING] * 5}
    tables = tables_of(record_of(stacks_of(looks), [clock_of(100, "a", [0, 80])]))
    cpu = {one.function: one.cpu_s for one in tables.by_frame}
    assert cpu == pytest.approx({"spin": 0.05, "get": 0.03})


def test_without_clocks_cpu_time_is_unknown_not_zero() -> None:
    tables = tables_of(record_of(stacks_of({"a": [BUSY] * 4})))
    assert math.isnan(tables.by_frame[0].cpu_s)
    assert hot_frames(tables)[0].cpu_s is None


def test_a_blind_stretch_counts_for_nothing() -> None:
    blind = (BEGIN_NS + 10 * ROUND_NS, BEGIN_NS + 30 * ROUND_NS)
    stacks = stacks_of({"a": [BUSY] * 40}, blind=[blind])
    assert tables_of(record_of(stacks)).by_frame[0].exclusive_s == pytest.approx(0.2)


def test_a_sleeping_helper_is_told_by_its_caller() -> None:
    looks = {"t": ["copy:1>nap:2"] * 6 + ["compute:1>nap:2"] * 4}
    stacks = stacks_of(looks, source={"nap": "time.sleep(left)"})
    rows = tables_of(record_of(stacks)).by_frame
    assert [(one.function, one.caller) for one in rows] == [
        ("nap", "copy (copy.py:1)"),
        ("nap", "compute (compute.py:1)"),
    ]


def test_a_threads_own_function_that_sleeps_is_not_told_by_the_librarys_thread() -> None:
    run = "run@/usr/lib/python3.11/threading.py:982"
    stacks = stacks_of({"t": [f"{run}>poll:2"] * 6}, source={"poll": "time.sleep(1)"})
    (row,) = tables_of(record_of(stacks)).by_frame
    assert (row.function, row.caller) == ("poll", None)


def test_hot_frames_put_lines_of_a_function_together_and_leave_out_waits() -> None:
    looks = {
        "worker": ["step:1>push:7"] * 10 + ["step:1>push:8"] * 20 + [WAITING] * 30,
        "driver": ["main:1>nap:2"] * 60,
    }
    stacks = stacks_of(looks, source={"nap": "time.sleep(60)"})
    clocks = [clock_of(100, "worker", [0] * 7), clock_of(101, "driver", [0] * 7)]
    found = hot_frames(tables_of(record_of(stacks, clocks, workers=[100])))
    assert [(one.function, one.line, one.samples) for one in found] == [("push", 8, 30)]


def test_a_librarys_frame_is_told_by_the_users_code_that_called_it() -> None:
    library = "call@/usr/lib/python3.12/site-packages/torch/nn/linear.py:9"
    ours = f"use@{INSTRUMENTS}instruments.py:1>start@{INSTRUMENTS}stacks.py:2"
    looks = {
        "a": [f"main:1>block:4>{library}"] * 10
        + [f"main:1>block:6>{library}"] * 20
        + [f"main:1>head:2>{library}"] * 5
        + [f"main:1>{ours}"] * 9
        + [library] * 4
    }
    stacks = stacks_of(looks)
    found = hot_frames(
        tables_of(record_of(stacks, [clock_of(100, "a", range(0, 481, 96))], workers=[100]))
    )
    assert [(one.function, one.caller, one.samples) for one in found] == [
        ("call", "block (block.py:6)", 30),
        ("call", "head (head.py:2)", 5),
        ("call", None, 4),
    ]
    assert found[0].share == pytest.approx(30 / 39)


def test_frames_of_the_role_that_limits_come_before_those_of_roles_that_wait_for_it() -> None:
    looks = {
        "target": ["work:1>pack:3"] * 20 + ["work:1>run:4"] * 40,
        "drafter": ["train:1>backward:5"] * 50 + [WAITING] * 10,
        "spin": ["spin:1"] * 60,
    }
    clocks = [
        clock_of(100, "target", range(0, 601, 100), role="target"),
        clock_of(101, "drafter", range(0, 601, 100), role="drafter"),
        clock_of(102, "spin", range(0, 301, 50)),
    ]
    tables = tables_of(record_of(stacks_of(looks), clocks, workers=[100, 101]))
    names = [one.function for one in hot_frames(tables, "target")]
    assert [one.function for one in hot_frames(tables)] == ["backward", "run", "spin", "pack"]
    assert names == ["run", "spin", "pack", "backward"]


def test_threads_are_ranked_by_their_clocks() -> None:
    clocks = [
        clock_of(1, "idle", [0, 0.2], role="drafter"),
        clock_of(2, "busy", [0, 90]),
        clock_of(3, "loader", [0, 50], is_process=True),
    ]
    found = thread_results(record_of(None, clocks))
    assert [one.name for one in found] == ["busy", "process loader", "idle"]
    assert [one.cpu_pct for one in found] == pytest.approx([90.0, 50.0, 0.2])
    assert found[2].role == "drafter"


def test_what_stands_out_is_said() -> None:
    looks = {"spin-0": [BUSY] * 100, "t": ["train:1>write:3"] * 100}
    stacks = stacks_of(looks, source={"write": "os.fsync(file.fileno())"})
    waited = [130.0 * at for at in range(11)]
    clocks = [
        clock_of(100, "spin-0", [100 * one for one in range(11)], core_wait_ms=[0.0] * 11),
        clock_of(101, "t", [0.0] * 11, role="trainer", core_wait_ms=waited),
    ]
    plain = record_of(stacks, clocks, workers=[101])
    record = CpuRecord(
        start_ns=plain.start_ns,
        end_ns=plain.end_ns,
        stacks=stacks,
        clocks=with_cores(plain, CoreUse(tree_s=1.0, others_s=1.0, idle_s=0.0)).clocks,
        pauses=CollectorPauses(
            start_ns=[BEGIN_NS], end_ns=[BEGIN_NS + 250_000_000], generation=[2], native_id=[101]
        ),
        interpreter=Interpreter(
            free_threaded_build=False,
            gil_enabled=True,
            switch_interval_ms=5.0,
            wakes=100,
            wake_late_ms=(9.0, 20.0, 40.0),
            wake_core_ms=1.0,
        ),
        workers=[101],
    )
    said = "\n".join(summarize_cpu(record, [], [], (0, 1), "/app").sentences)
    assert "GIL contention: a thread that wakes runs Python 9.0 ms late" in said
    assert "most CPU: spin (spin.py:5) in spin-0" in said
    assert "the garbage collector took 25.0 % of the time" in said
    assert "longest 250 ms, in t" in said
    assert "trainer spent 100.0 % of its time in write (write.py:3): os.fsync" in said
    assert "something else used the cores: 2 busy threads" in said


def with_cores(record: CpuRecord, cores: CoreUse | None) -> CpuRecord:
    assert record.clocks is not None
    return msgspec.structs.replace(
        record, clocks=msgspec.structs.replace(record.clocks, cores=cores)
    )


def test_nothing_else_is_blamed_for_cores_that_the_program_used_itself_or_nobody() -> None:
    waiting = clock_of(100, "t", [0, 300, 600], core_wait_ms=[0, 100, 400])
    record = record_of(None, [waiting])
    theirs = with_cores(record, CoreUse(tree_s=0.6, others_s=1.3, idle_s=0.1))
    (only,) = summarize_cpu(theirs, [], [], (0, 1)).sentences
    assert "1 busy thread of this process waited 0.4 s for one" in only
    assert "had the 2 usable ones for 1.3 CPU s, and all of its own for 0.6" in only
    for cores in (
        CoreUse(tree_s=1.9, others_s=0.1, idle_s=0.0),  # threads that no clock saw, say
        CoreUse(tree_s=0.6, others_s=1.0, idle_s=6.4),  # a quota of two of many cores
        None,
    ):
        assert summarize_cpu(with_cores(record, cores), [], [], (0, 1)).sentences == []


LATE = Interpreter(
    free_threaded_build=False,
    gil_enabled=True,
    switch_interval_ms=5.0,
    wakes=100,
    wake_late_ms=(5.0, 6.0, 9.0),
    wake_core_ms=0.0,
)


def said_of(record: CpuRecord) -> str:
    """Its sentences, where waking threads of ours ran 5 ms late."""
    late = CpuRecord(
        start_ns=record.start_ns,
        end_ns=record.end_ns,
        stacks=record.stacks,
        clocks=record.clocks,
        interpreter=LATE,
        workers=record.workers,
    )
    return "\n".join(summarize_cpu(late, [], [], (0, 1), "/app").sentences)


def test_one_thread_that_computes_contends_with_nobody() -> None:
    step, other = "main:1>step:2>compute:3", "serve:1>accept:2"
    busy = clock_of(100, "MainThread", range(0, 1001, 100))
    idle = clock_of(101, "idle", [0] * 11)
    alone = record_of(
        stacks_of({"MainThread": [step] * 100, "idle": [other] * 100}), [busy, idle], workers=[100]
    )
    assert "GIL" not in said_of(alone)
    starved = record_of(
        stacks_of({"MainThread": [step] * 100, "worker": [other] * 100}),
        [busy, clock_of(101, "worker", [0] * 11, role="target")],
        workers=[100, 101],
    )
    assert "GIL contention" in said_of(starved)


def test_who_holds_the_lock_is_told_by_the_users_code() -> None:
    spin = "spinner:9>is_set@/usr/lib/python3.11/threading.py:575"
    stacks = stacks_of({"a": [spin] * 50, "b": [spin] * 50})
    clocks = [clock_of(100, "a", range(0, 501, 100)), clock_of(101, "b", range(0, 501, 100))]
    assert "most CPU: spinner (spinner.py:9) in a, b" in said_of(record_of(stacks, clocks))


def test_a_step_loops_disk_is_told_without_a_role() -> None:
    looks = {"MainThread": ["main:1>write:3"] * 30 + [BUSY] * 70}
    stacks = stacks_of(looks, source={"write": "os.fsync(file.fileno())"})
    record = record_of(stacks, [clock_of(100, "MainThread", range(0, 701, 70))], workers=[100])
    assert "MainThread spent 30.0 % of its time in write (write.py:3): os.fsync" in said_of(record)


def test_lines_are_those_of_the_users_step_though_stacks_are_torn_above_it() -> None:
    (loop, *_) = (one for one in LOOPS if one.endswith("/loop.py"))
    whole = f"main:1>run@{loop}:233>step:9>"
    looks = {
        "MainThread": [whole + "pack:3"] * 60
        + [whole + "model:4"] * 30
        + ["step:10>pack:3"] * 8
        + [f"main:1>run@{loop}:240"] * 2
    }
    record = record_of(
        stacks_of(looks), [clock_of(100, "MainThread", range(0, 1001, 100))], workers=[100]
    )
    assert "MainThread by line of step (step.py): 90 % line 9" in said_of(record)


def test_cpu_time_counts_in_the_window_alone() -> None:
    resting = [0, 0, 0, *range(100, 1001, 100), 1000, 1000]
    clock = clock_of(1, "main", resting)
    window = (BEGIN_NS + 20 * ROUND_NS, BEGIN_NS + 120 * ROUND_NS)
    assert cpu_pct(clock, window) == pytest.approx(100)
    assert cpu_pct(clock) == pytest.approx(100 * 10 / 14)
    assert cpu_pct(clock, (0, 1)) == cpu_pct(clock)


def test_more_busy_threads_than_cores_are_said() -> None:
    used, waited = ([40.0 * at for at in range(11)], [60.0 * at for at in range(11)])
    clocks = [clock_of(at, f"t{at}", used, core_wait_ms=waited) for at in range(1, 6)]
    (only,) = summarize_cpu(record_of(None, clocks), [], [], (0, 1)).sentences
    assert only == (
        "too few cores: 5 threads wanted 5.0 of them on average, 2 are usable "
        "(OMP_NUM_THREADS is not set)"
    )


def test_nothing_is_said_where_nothing_stands_out() -> None:
    record = record_of(stacks_of({"a": [WAITING] * 10}), [clock_of(100, "a", [0.0, 1.0])])
    assert summarize_cpu(record, [], [], (0, 1)).sentences == []


@pytest.mark.parametrize(
    ("function", "file", "text", "kind"),
    [
        ("Condition.wait", "/usr/lib/python3.11/threading.py", "waiter.acquire()", FrameKind.WAIT),
        ("get", "/usr/lib/python3.10/queue.py", "", FrameKind.WAIT),
        ("get", "/app/queue.py", "return self.items[0]", FrameKind.RUN),
        ("nap", "/app/a.py", "time.sleep(0.1)", FrameKind.SLEEP),
        ("f", "/app/a.py", "with self._lock:", FrameKind.WAIT),
        ("f", "/app/a.py", "done.wait(3)", FrameKind.WAIT),
        ("f", "/app/a.py", "ready, _, _ = select.select(files, [], [])", FrameKind.WAIT),
        ("f", "/app/a.py", "text = ','.join(words)", FrameKind.RUN),
        ("f", "/app/a.py", "row = tensor.select(0, 1)", FrameKind.RUN),
        ("<lambda>", "<string>", "", FrameKind.RUN),
    ],
)
def test_kinds_of_frames(function: str, file: str, text: str, kind: FrameKind) -> None:
    assert frame_kind(function, file, text) == kind


@pytest.mark.parametrize(
    ("file", "short"),
    [
        ("/app/src/a.py", "src/a.py"),
        ("/app2/a.py", "/app2/a.py"),
        ("/app/.venv/lib/python3.11/site-packages/torch/nn.py", "torch/nn.py"),
        ("/usr/lib/python3.13t/threading.py", "threading.py"),
        ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>"),
    ],
)
def test_paths_are_short(file: str, short: str) -> None:
    assert short_path(file, "/app") == short


def test_cpu_time_of_runs_matches_a_slow_oracle() -> None:
    choose = np.random.default_rng(5)
    for _ in range(30):
        pattern = [BUSY if one else WAITING for one in choose.integers(0, 2, 40)]
        used = np.concatenate(([0.0], np.cumsum(choose.uniform(0, 100, 4))))
        stacks = stacks_of({"a": pattern})
        tables = tables_of(record_of(stacks, [clock_of(100, "a", used.tolist())]))
        cpu = {one.function: one.cpu_s for one in tables.by_frame}
        spin = 0.0
        for at in range(4):
            runs = sum(one == BUSY for one in pattern[10 * at : 10 * at + 10]) / 100
            spin += min(runs, (used[at + 1] - used[at]) / 1e3)
        assert cpu.get("spin", 0.0) == pytest.approx(spin, abs=1e-6)
        assert sum(cpu.values()) == pytest.approx(used[-1] / 1e3, abs=1e-6)


def test_a_call_of_our_own_counts_for_the_line_that_made_it() -> None:
    proxy, loop = f"QueueProxy._timed@{OURS}measuring/queues.py:", min(LOOPS)
    looks = [
        *(
            f"main:1>train:{line}>QueueProxy.get@{OURS}measuring/queues.py:47>{proxy}80"
            for line in (3, 4)
        ),
        f"main:1>train:3>{proxy}83",
        f"main:1>run@{loop}:9>step_end@{OURS}measuring/recorder.py:9",
    ]
    stacks = stacks_of({"a": looks})
    source = ["result = call(*args, **kwargs)" if one[2] == 83 else "" for one in stacks.frames]
    rows = tables_of(record_of(msgspec.structs.replace(stacks, source=source))).by_frame
    told = {(one.function, one.line, one.kind.name, one.caller) for one in rows}
    assert told == {
        ("train", 3, "RUN", None),
        ("train", 4, "RUN", None),
        ("QueueProxy._timed", 83, "WAIT", "train (train.py:3)"),
        ("step_end", 9, "RUN", "main (main.py:1)"),
    }
