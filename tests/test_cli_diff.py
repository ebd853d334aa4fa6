"""``tokbudget diff``: evidence side by side, and files that cannot be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_tokbudget.cli import main
from pytest_tokbudget.records.evidence import DeviceLedgerMs, Evidence
from pytest_tokbudget.records.result import DeviceResult, FrameResult, RunResult, TestResult
from pytest_tokbudget.storing.codec import encode_baseline, encode_compact, encode_pretty

from .storing.builders import baseline, run

NODEID = "tests/test_train.py::test_step"


def evidence(allocator_ms: float, frame_ms: float, recompilations: float) -> Evidence:
    rows_ms = {"compute": 14.0, "idle: allocator": allocator_ms}
    frame = FrameResult(
        function="collate", file="a.py", line=3, share=0.2, samples=9, threads=["MainThread"]
    )
    return Evidence(
        ledgers=[
            DeviceLedgerMs(device="cuda:0", step_ms=14 + allocator_ms, busy_ms=14, rows_ms=rows_ms)
        ],
        counters={"recompilations": recompilations},
        hot_frames=[frame],
        frames_ms=[frame_ms],
    )


THEN, NOW = evidence(0.5, 1.0, 0.0), evidence(4.25, 3.5, 2.0)


def result(nodeid: str = NODEID, **fields: Any) -> TestResult:
    figures: dict[str, Any] = {
        "findings": [],
        "sessions": [],
        "devices": [
            DeviceResult(uuid=None, name="cuda:0 NVIDIA H200", ledger=NOW.ledgers[0].rows_ms)
        ],
        "counters": NOW.counters,
        "hot_frames": [msgspec.structs.replace(NOW.hot_frames[0], share=0.4)],
    }
    return TestResult(nodeid=nodeid, outcome="PASS", reason="x", **(figures | fields))


def run_json(*tests: TestResult) -> bytes:
    return encode_pretty(
        RunResult(created="2026-01-04T00:00:00Z", commit=None, machine=None, tests=[*tests])
    )


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, data in {
        "baseline.json": encode_baseline(baseline(reference=THEN)),
        "bare.json": encode_baseline(baseline()),
        "record.json": encode_compact(run(evidence=NOW)),
        "run.json": run_json(result()),
        "two.json": run_json(result(), result("b.py::other")),
        "none.json": run_json(),
        "notes.json": b"not json",
    }.items():
        Path(name).write_bytes(data)


def test_a_baseline_and_a_run_record(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "baseline.json", "record.json"]) == 0

    assert [" ".join(one.split()) for one in capsys.readouterr().out.splitlines()] == [
        f"then baseline.json (baseline of 2026-01-02), {NODEID}",
        f"now record.json (run record), {NODEID}",
        "",
        "cuda:0, ms a step then now difference",
        "idle: allocator 0.50 4.25 +3.75",
        "compute 14.00 14.00 0.00",
        "step 14.50 18.25 +3.75",
        "",
        "changed counters",
        "recompilations 0 → 2 a step",
        "",
        "hot frames that grew",
        "collate (a.py) 1.00 ms → 3.50 ms",
    ]


@pytest.mark.parametrize("arguments", [["run.json"], ["two.json", "--test", NODEID], ["."]])
def test_a_run_json_tells_shares(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "baseline.json", *arguments]) == 0

    text = capsys.readouterr().out
    assert "collate (a.py) 20 % of samples → 40 % of samples" in text
    assert "+3.75" in text


def test_a_run_json_whose_frames_have_their_cost_tells_ms(
    capsys: pytest.CaptureFixture[str],
) -> None:
    frame = msgspec.structs.replace(NOW.hot_frames[0], ms_per_step=NOW.frames_ms[0])
    Path("run.json").write_bytes(run_json(result(hot_frames=[frame])))

    assert main(["diff", "baseline.json", "run.json"]) == 0
    assert "collate (a.py) 1.00 ms → 3.50 ms" in " ".join(capsys.readouterr().out.split())


def test_nothing_differs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "record.json", "record.json", "--width", "40"]) == 0

    text = capsys.readouterr().out
    assert "changed counters" not in text
    assert "hot frames" not in text
    assert max(map(len, text.splitlines())) <= 40


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["baseline.json", "gone.json"], ["gone.json", "No such file", "a baseline"]),
        (["bare.json", "run.json"], ["bare.json: baseline of", "without evidence", "refresh"]),
        (["baseline.json", "two.json"], ["two.json", NODEID, "b.py::other", "--test NODEID"]),
        (["baseline.json", "none.json"], ["none.json", "found none", "measure first"]),
        (["notes.json", "run.json"], ["notes.json", "something else", "name a run.json"]),
        (["baseline.json", "run.json", "--test", "c.py::d"], ["not of c.py::d", "--test"]),
    ],
)
def test_what_cannot_be_compared_is_a_usage_error(
    arguments: list[str], said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", *arguments]) == 2

    found = capsys.readouterr()
    assert found.out == ""
    assert [one for one in said if one not in found.err] == [], found.err


def test_show_says_what_evidence_a_baseline_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "baseline.json"]) == 0

    text = capsys.readouterr().out
    assert "  evidence  of 2026-01-02: cuda:0 14.5 ms a step\n" in text
    assert "            hot frames, % of all threads' samples: collate 20 %\n" in text
    newer = msgspec.structs.replace(NOW.hot_frames[0], thread_share=0.9)
    found = baseline(reference=msgspec.structs.replace(NOW, hot_frames=[newer]))
    Path("newer.json").write_bytes(encode_baseline(found))
    assert main(["show", "newer.json"]) == 0
    assert "hot frames, % of its threads' time: collate 90 %\n" in capsys.readouterr().out
    assert main(["show", "bare.json"]) == 0
    assert "evidence" not in capsys.readouterr().out
