"""``tokbudget show``: runs, baselines, and files that cannot be shown."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_tokbudget.cli import main
from pytest_tokbudget.records.baseline import Baseline, RefreshEntry, Spread, StoredSession
from pytest_tokbudget.records.machine import MachineClass, Software
from pytest_tokbudget.records.result import RunResult, TestResult
from pytest_tokbudget.records.workload import Workload
from pytest_tokbudget.storing.codec import encode_baseline, encode_pretty

RUN = RunResult(
    created="2026-01-02T03:04:05Z",
    commit=None,
    machine=None,
    tests=[
        TestResult(
            nodeid="a.py::first",
            outcome="PASS",
            reason="As fast as the baseline.",
            tok_s=14480.0,
            baseline_tok_s=14480.0,
            change_pct=0.0,
        ),
        TestResult(nodeid="a.py::second", outcome="FAILED", reason="step 3 returned None"),
    ],
)


def stored(tok_s: float, job: str) -> StoredSession:
    return StoredSession(
        tok_s=tok_s,
        steps=200,
        seconds=3.0,
        warmup_steps=20,
        warmup_seconds=1.0,
        job=job,
        commit=None,
        host_hash="4f2a",
        unix_s=1,
        software=Software(python="3.11", tokbudget="0.1.0"),
    )


BASELINE = Baseline(
    workload=Workload(path="a.py", qualname="first", nodeid="a.py::first"),
    machine_class=MachineClass(slug="cpu-amd-epyc-2c", fields={"usable_cores": "2"}),
    token_kind="real",
    anchor=[stored(tok_s, "one") for tok_s in (990.0, 1000.0, 1010.0)],
    appended=[stored(1005.0, "two")],
    learned=Spread(variance=0.0001, degrees=4.0, jobs=2),
    log=[
        RefreshEntry(date="2026-01-01", commit="99aa00bb11cc", reason="first", new_tok_s=900.0),
        RefreshEntry(
            date="2026-01-02",
            commit=None,
            reason="fused AdamW",
            old_tok_s=900.0,
            new_tok_s=999.9667,
            change_pct=11.10741,
            change_ci_pct=(9.0, 13.25557),
        ),
    ],
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(path: str, data: bytes) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(data)
    return path


@pytest.mark.parametrize("path", [None, ".", ".tokbudget", ".tokbudget/run.json"])
def test_the_last_run_is_shown(path: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    written(".tokbudget/run.json", encode_pretty(RUN))

    status = main(["show"] if path is None else ["show", path])

    assert status == 0
    assert capsys.readouterr().out.splitlines() == [
        "PASS  a.py::first",
        "  As fast as the baseline.",
        "",
        "  tok/s     14,480 now · 14,480 baseline",
        "  change    0 %",
        "",
        "FAILED  a.py::second",
        "  step 3 returned None",
        "",
        "1 test judged, at most 1 % false alarms each: at most 0.01 to expect",
    ]


def test_a_baseline_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    path = written("baselines/cpu/first.json", encode_baseline(BASELINE))

    assert main(["show", path, "--width", "60"]) == 0

    # How the spread is pooled is tested with the statistics.
    shown = re.sub(r"0\.\d\d %", "0.83 %", capsys.readouterr().out)
    assert shown.splitlines() == [
        "BASELINE  a.py::first",
        "",
        "  tok/s     1,000 (real tokens)",
        "  anchor    990 · 1,000 · 1,010 tok/s",
        "  appended  1,005 tok/s",
        "  spread    0.83 % between sessions (7 degrees of freedom, 4",
        "            jobs)",
        "  machine   cpu-amd-epyc-2c: usable_cores 2",
        "",
        "  refreshes, newest first",
        "  2026-01-02           900 → 1,000 tok/s, +11 % (+9 … +13",
        "                       %): fused AdamW",
        "  2026-01-01 99aa00bb1 900 tok/s: first",
    ]


RUN_BYTES, BASELINE_BYTES = encode_pretty(RUN), encode_baseline(BASELINE)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "an empty file"),
        (RUN_BYTES[:200], "a truncated file"),
        (BASELINE_BYTES[:200], "a truncated file"),
        (b"[1, 2]", "expected a RunResult"),
        (
            b'{"schema":1,"passes":[]}',
            "a run record, one session's raw data; show takes a run.json",
        ),
        (RUN_BYTES.replace(b'"schema": 1', b'"schema": 99'), "upgrade pytest-tokbudget"),
        (BASELINE_BYTES.replace(b'"schema": 1', b'"schema": 99'), "upgrade pytest-tokbudget"),
        (BASELINE_BYTES.replace(b"1000.0", b"-10.0"), "tok_s is -10.0, expected"),
        (BASELINE_BYTES.replace(b"anchor", b"anchored"), "expected a RunResult"),
    ],
)
def test_what_cannot_be_shown_is_named(
    data: bytes, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written("some/file.json", data)

    status = main(["show", path])

    shown = capsys.readouterr()
    assert (status, shown.out) == (2, "")
    assert shown.err.startswith("tokbudget: ")
    assert message in shown.err
    assert "Traceback" not in shown.err


@pytest.mark.parametrize("path", ["missing.json", ".", ".tokbudget"])
def test_nothing_there_says_what_to_do(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", path]) == 2

    message = capsys.readouterr().err
    assert path in message
    assert "pytest --tokbudget" in message


@pytest.mark.parametrize(
    "arguments",
    [[], ["bogus"], ["history", "a", "b"], ["show", "--width", "39"], ["show", "--width", "x"]],
)
def test_wrong_arguments_are_a_usage_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)

    assert caught.value.code == 2
    assert "usage: tokbudget" in capsys.readouterr().err


def test_a_reader_that_leaves_early_is_no_error() -> None:
    written(".tokbudget/run.json", encode_pretty(RUN))
    script = "import sys; from pytest_tokbudget.cli import main; sys.exit(main(['show']))"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 0)
