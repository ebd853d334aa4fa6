"""Evidence in the section of a test: what comes where, how wide, and what could not be seen."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from pytest_tokbudget.records.evidence import NATIVE_NOT_ASKED
from pytest_tokbudget.records.result import (
    DeviceResult,
    Finding,
    FrameResult,
    NativeFrameResult,
    TestResult,
    ThreadResult,
)
from pytest_tokbudget.reporting.evidence_text import change_text, device_text, finding_text
from pytest_tokbudget.reporting.frame_text import frame_text, native_text, place
from pytest_tokbudget.reporting.terminal import render

ResultOf = Callable[..., TestResult]

LONG = "/home/someone/checkouts/a-long-name/examples/dflash/simulated.py"
LEDGER = {"compute": 14.2, "idle: launch calls": 1.1, "idle: allocator": 3.7, "exposed copy": 0.4}


def frame(function: str, file: str = LONG, line: int = 37) -> FrameResult:
    return FrameResult(
        function=function, file=file, line=line, share=0.12, samples=80, threads=["MainThread"]
    )


EVIDENCE: dict[str, Any] = {
    "devices": [
        DeviceResult(uuid=None, name="cuda:0 NVIDIA H200", busy_ms_per_step=14.6, ledger=LEDGER),
        DeviceResult(uuid=None, name="cuda:1 NVIDIA H200"),
    ],
    "findings": [
        Finding(
            cause="allocator: cudaMalloc in the_function_with_a_rather_long_name_of_its_own",
            device="cuda:0",
            thread="MainThread",
            file=LONG,
            line=37,
            ms_per_step=3.8,
            baseline_ms_per_step=0.1,
            delta_ms_per_step=3.7,
            samples=12,
        ),
        Finding(cause="launch calls", ms_per_step=1.1, delta_ms_per_step=0.9, approximate=True),
        Finding(cause="counter: syncs_total", count_per_step=7.0, baseline_count_per_step=2.0),
    ],
    "ledger_changes": {"cuda:0": {"compute": 0.2, "idle: allocator": 3.7, "idle: launches": 1.2}},
    "changed_counters": {"syncs_total": (2.0, 7.0)},
    "hot_frames": [frame("a"), frame("b", line=40), frame("c", file="x.py"), frame("d", "y.py")],
    "threads": [ThreadResult(name="MainThread", tid=1, role="trainer", cpu_pct=98.0)],
    "sentences": ["the loader limits the pipeline"],
    "sampling": "800 samples at 100 a second over 8 s",
    "native_frames": [
        NativeFrameResult(
            function="np::qsort_simd::partition<avx2<double, 8>, Less<avx2<double, 8>>, double>",
            library="_multiarray_umath.cpython-311-x86_64-linux-gnu.so",
            caller="pack",
            file=LONG,
            line=37,
            share=0.66,
            cpu_s=6.0,
            samples=80,
            threads=["MainThread", "a", "b"],
        )
    ],
    "native_sampling": "9.1 s of CPU time in 10.0 s; 121 samples, 12 Hz",
    "perturbation": {"stacks": 0.99, "native": 0.93},
}


def shown(result: TestResult, **options: Any) -> str:
    return render(result, None, **options)


def test_a_failure_says_where_right_under_its_reason(result_of: ResultOf) -> None:
    lines = shown(result_of("REGRESSED", **EVIDENCE)).splitlines()

    title = lines.index("  where the milliseconds went (a step, against the baseline)")
    reason = next(n for n, one in enumerate(lines) if "alone is slower" in one)
    assert title == reason + 2
    assert lines[title + 1].startswith("  1  +3.7 ms allocator: cudaMalloc")
    assert title < next(n for n, one in enumerate(lines) if one.startswith("  tok/s"))
    text = " ".join(" ".join(lines).split())
    assert (
        "2 ~+0.9 ms launch calls 3 counter: syncs_total 2 → 7 a step "
        "cuda:0 slower by 5.10 ms: allocator +3.70 · launches +1.20 · compute +0.20" in text
    )
    assert "0.1 ms → 3.8 ms; n = 12" in text


def test_a_sum_over_threads_is_called_one() -> None:
    found = Finding(
        cause="host: shout",
        file="a.py",
        line=3,
        ms_per_step=11.0,
        baseline_ms_per_step=1.0,
        delta_ms_per_step=10.0,
        summed_threads=12,
        samples=80,
    )

    assert finding_text(found) == (
        "+10 ms host: shout (a.py:3), sum of 12 threads; 1 ms → 11 ms; n = 80"
    )


@pytest.mark.parametrize("outcome", ["NOT_JUDGED", "RECORDED"])
def test_what_was_only_measured_shows_its_threads_on_one_line(
    result_of: ResultOf, outcome: str
) -> None:
    def row(*names: str) -> list[str]:
        threads = [
            ThreadResult(name=name, tid=at, role="drafter" if at else None, cpu_pct=98.0 - at)
            for at, name in enumerate(names)
        ]
        text = shown(result_of(outcome, **EVIDENCE | {"threads": threads}))
        lines = text.split("  threads")[1].split("  sampled")[0].splitlines()
        return [one.strip() for one in lines]

    assert row("spin-0", "d-0", "d-1") == ["spin-0 98 % · d-0 (drafter) 97 % · d-1 (drafter) 96 %"]
    assert row(*(f"drafter-{at}" for at in range(9))) == [
        "drafter-0 98 % · drafter-1 (drafter) 97 % · 7 more"
    ]
    assert row("x" * 90, "\x1b" * 30, "日本" * 20) == [f"{'x' * 24}… 98 % · 2 more"]


def test_a_changed_counter_is_said_once(result_of: ResultOf) -> None:
    found = [Finding(cause="counter: copies_htod", count_per_step=4e6, baseline_count_per_step=1.5)]
    alone = shown(result_of("REGRESSED", findings=found, sentences=[]), width=120)
    assert "  what changed (a step, against the baseline)" in alone
    assert "1 counter: copies_htod 1.5 → 4,000,000 a step" in " ".join(alone.split())

    told = "copies htod 3/2 → 4,000,000 a step in every step of 3 sessions."
    once = shown(result_of("REGRESSED", reason=told, findings=found, sentences=[]), width=120)
    assert (once.count("4,000,000"), "what changed" in once) == (1, False)


def test_a_pass_is_short_and_a_failure_long(result_of: ResultOf) -> None:
    passed, failed = (shown(result_of(one, **EVIDENCE)) for one in ("PASS", "REGRESSED"))

    assert "where the milliseconds went" not in passed
    assert "threads   MainThread" not in passed
    assert "syncs_total 2 → 7 a step" in passed
    assert "busy 75.3 % · idle 24.7 % of 19.4 ms" in passed
    assert "y.py" in failed
    assert "y.py" not in passed
    assert "threads   MainThread (trainer) 98 %" in failed


def test_a_pass_tells_the_foremost_sentences_and_no_long_last_one(result_of: ResultOf) -> None:
    said = ["target limits", "GIL contention", "the collector", "by line of"]
    short = shown(result_of("PASS", **EVIDENCE | {"sentences": said}))
    assert [one for one in said if f"host      {one}" in short] == said[:3]

    said[2] = "by line of " + "x " * 150
    long = shown(result_of("NOT_JUDGED", **EVIDENCE | {"sentences": said}))
    assert [one for one in said if f"host      {one[:10]}" in long] == said[:2]


@pytest.mark.parametrize("outcome", ["PASS", "REGRESSED", "INCONCLUSIVE"])
@pytest.mark.parametrize("width", [80, 60, 40])
def test_no_line_is_too_wide_nor_parts_a_number_from_its_unit(
    result_of: ResultOf, outcome: str, width: int
) -> None:
    lines = shown(result_of(outcome, **EVIDENCE), width=width).splitlines()

    assert max(map(len, lines)) <= width
    assert not [one for one in lines if re.match(r"\s{5,}(ms|%|tok/s)(\s|$)", one)]


def test_ascii_says_to_and_makes_no_home_directory(result_of: ResultOf) -> None:
    text = shown(result_of("REGRESSED", **EVIDENCE), encoding="ascii")

    text.encode("ascii")
    assert "syncs_total 2 to 7" in text
    assert ".../examples/dflash/simulated.py:37" in text
    assert "~/" not in text
    assert " > " not in text


@pytest.mark.parametrize("outcome", ["PASS", "REGRESSED", "FAILED"])
def test_no_evidence_adds_nothing(result_of: ResultOf, outcome: str) -> None:
    empty: dict[str, Any] = {"findings": [], "sentences": [], "hot_frames": [], "devices": []}

    assert shown(result_of(outcome, **empty)) == shown(result_of(outcome))


def test_without_a_baseline_nothing_is_said_against_it(result_of: ResultOf) -> None:
    alone = result_of("REGRESSED", findings=[Finding(cause="allocator", ms_per_step=3.8)])

    assert "where the milliseconds went (a step)\n  1  3.8 ms allocator" in shown(alone)


def test_each_reason_is_said_once_with_all_that_it_is_of(result_of: ResultOf) -> None:
    fields = EVIDENCE | {"hot_frames": None, "ledger_changes": None}
    unavailable = {
        "stacks": "no py-spy",
        "thread clocks": "no py-spy",
        "hot_frames": "the evidence pass saw none",
        "ledger_changes": "no trace to compare with",
    }
    rows = shown(result_of("REGRESSED", unavailable=unavailable, **fields)).splitlines()

    first = next(n for n, one in enumerate(rows) if one.startswith("  not seen"))
    assert [one.removeprefix("  not seen").strip() for one in rows[first:]] == [
        "stacks, thread clocks: no py-spy",
        "ledger of cuda:1: the trace has none of its work",
        "change of the ledger: no trace to compare with",
    ]


def test_without_an_evidence_pass_the_reason_is_said_once(result_of: ResultOf) -> None:
    none = "no evidence pass was run"
    text = shown(result_of("PASS", unavailable={"ledger": none, "hot_frames": none}))

    assert text.count(none) == 1


def test_a_printed_change_adds_up() -> None:
    rows_ms = {f"idle: {n}": 1.0049 - n / 7 for n in range(9)}
    text = change_text("cuda:0", rows_ms).replace("−", "-")

    total = float(re.findall(r"by (\S+) ms", text)[0])
    sign = -1 if "faster" in text else 1
    parts = [float(one) for one in re.findall(r"[+-]\d+\.\d+", text)]
    assert len(parts) == 5
    assert sum(parts) == pytest.approx(sign * total)


def test_the_shares_of_a_device_sum_to_one_hundred() -> None:
    text = device_text(DeviceResult(uuid=None, name="cuda:0", busy_ms_per_step=2.0, ledger=LEDGER))

    busy, idle = (float(one) for one in re.findall(r"(\S+) %", text))
    assert busy + idle == pytest.approx(100)


def test_long_paths_are_shortened_from_the_left_and_not_repeated() -> None:
    assert place(LONG, 37) == "…/examples/dflash/simulated.py:37"
    assert place("a.py", None) == "a.py"
    assert place("x" * 90 + ".py", 1) == "x" * 90 + ".py:1"
    assert frame_text(frame("b", line=40), same_file=True).startswith("12 % b (line 40, same file)")


def test_frames_say_what_their_figures_are(result_of: ResultOf) -> None:
    busy = {"share": 0.0033, "thread_share": 0.99, "ms_per_step": 8.08, "threads_are": "counting"}
    loader = {"share": 0.33, "thread_share": 0.42, "ms_per_step": 126.0, "threads": ["l0", "l1"]}
    frames = [
        msgspec.structs.replace(frame("cpu", "test_c.py"), **busy),
        msgspec.structs.replace(frame("load", "test_c.py"), **loader),
    ]

    def rows(*some: FrameResult) -> str:
        text = shown(result_of("PASS", **EVIDENCE | {"hot_frames": list(some)}))
        return " ".join(text.split("frames  ")[1].split("sampled")[0].split())

    assert rows(*frames) == (
        "% of the named threads' time, ms a step where they count the steps "
        "99 %, 8.08 ms cpu (test_c.py:37) in MainThread "
        "42 % load (line 37, same file) in l0, l1"
    )
    assert rows(frames[1]).startswith("% of the named threads' time 42 % load")
    old = msgspec.structs.replace(frames[1], thread_share=None)
    assert rows(old).startswith("% of all threads' samples 33 % load")


def test_native_frames_say_what_of_and_who_called_them(result_of: ResultOf) -> None:
    text = " ".join(shown(result_of("PASS", **EVIDENCE)).split())

    assert (
        "native of 9.1 s of CPU time in 10.0 s; 121 samples, 12 Hz: 66 % np::qsort_simd::partition "
        "(_multiarray_umath.so) from pack (…/examples/dflash/simulated.py:37) in MainThread, a +1"
    ) in text


def test_the_function_of_a_library_that_called_native_code_is_named_too() -> None:
    called = msgspec.structs.replace(
        EVIDENCE["native_frames"][0], file="gzip.py", called_from="save (a.py:3)"
    )

    assert "from pack (gzip.py:37) from save (a.py:3) in MainThread" in native_text(called)


def test_a_name_that_would_steer_the_terminal_is_shown_escaped(result_of: ResultOf) -> None:
    names = ["\x1b[31mred", "new\nline\u202e"]
    frames = [msgspec.structs.replace(frame("spin"), threads=names)]
    text = shown(result_of("PASS", **EVIDENCE | {"hot_frames": frames}))

    assert "in \\x1b[31mred, new\\nline\\u202e" in " ".join(text.split())
    assert "\x1b" not in text


def test_native_frames_that_nobody_asked_for_are_not_missed(result_of: ResultOf) -> None:
    fields = EVIDENCE | {"native_frames": None}
    unasked, refused = (
        shown(result_of("PASS", unavailable={"native_frames": why}, **fields))
        for why in (NATIVE_NOT_ASKED, "py-spy may not look into this process")
    )

    assert "native_frames" not in unasked
    assert "not asked for" not in unasked
    assert "native frames: py-spy may not look" in refused
