"""What is collected of a workload over time, and what is left out."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pytest_tokbudget.records.history import FileVersion
from pytest_tokbudget.records.result import RunResult, TestResult
from pytest_tokbudget.records.run import RunRecord, WarmUp
from pytest_tokbudget.storing.artifacts import ReportDirectory
from pytest_tokbudget.storing.codec import encode_baseline
from pytest_tokbudget.storing.history import HistoryReader, chosen

from .builders import baseline, entry, machine, run, session, workload


def at(unix_s: int, tok_s: float = 1000.0, job: str = "new", held: float = 0.0) -> RunRecord:
    one = run(tok_s, job=job, unix_offset_ns=(unix_s - 15) * 1_000_000_000)
    timing = msgspec.structs.replace(one.timing, held_ns=int(held * 10_000_000_000))
    return msgspec.structs.replace(one, passes=[timing])


def version(data: bytes, commit: str = "0123456789abcdef") -> FileVersion:
    return FileVersion(path="baselines/m/a.json", commit=commit, data=data)


@pytest.fixture
def report(tmp_path: Path) -> ReportDirectory:
    return ReportDirectory(tmp_path / ".tokbudget")


def test_each_session_counts_once_and_by_its_best_source(
    report: ReportDirectory, tmp_path: Path
) -> None:
    kept = [session(1000.0, "old", unix_s=100), session(1001.234567891, "old", unix_s=200)]
    rates = [one.tok_s for one in kept]
    first = baseline(anchor=kept, log=[entry("first", rates)])
    later = baseline(
        anchor=kept,
        appended=[session(990.0, "main", unix_s=300)],
        log=[entry("first", rates), entry("second", rates)],
    )
    for one in (at(200, 1001.234567891, "old"), at(300, 990.0, "main"), at(400)):
        report.write_run_record(one)
    reader = HistoryReader()

    reader.add_versions([version(encode_baseline(first)), version(encode_baseline(later))])
    reader.add_report(tmp_path / ".tokbudget")

    (found,) = reader.histories()
    assert [(one.session.unix_s, one.source, one.session.job) for one in found.sessions] == [
        (100, "anchor", "old"),
        (200, "anchor", "old"),
        (300, "appended", "main"),
        (400, "run", "new"),
    ]
    assert [one.reason for one in found.log] == ["first", "second"]
    assert found.versions == 2
    assert reader.notes == []


def test_what_is_no_point_of_a_history_is_counted(report: ReportDirectory, tmp_path: Path) -> None:
    unsteady = msgspec.structs.replace(at(1), warmup=WarmUp(steps=1, seconds=1.0, steady=False))
    other = msgspec.structs.replace(at(2), workload=workload(declaration={"lr": 1}))
    for one in (unsteady, other, at(3, held=0.5), at(4, held=0.02)):
        report.write_run_record(one)
    reader = HistoryReader()

    reader.add_report(tmp_path / ".tokbudget")

    (found,) = reader.histories()
    assert [one.session.unix_s for one in found.sessions] == [4]
    assert (found.unsteady, found.in_turn, found.other_workload) == (1, 1, 1)


def test_machine_classes_and_tests_are_kept_apart(report: ReportDirectory, tmp_path: Path) -> None:
    elsewhere = msgspec.structs.replace(at(1), machine=machine(accelerators=[]))
    another = msgspec.structs.replace(at(2), workload=workload("test_other"))
    for one in (elsewhere, another, at(3)):
        report.write_run_record(one)
    reader = HistoryReader()

    reader.add_report(tmp_path / ".tokbudget")

    found = reader.histories()
    assert len({(one.identity, one.machine) for one in found}) == 3
    assert len(chosen(found, "tests/test_train.py::test_step")) == 2
    assert chosen(found, "test_step") == []


def test_what_cannot_be_read_is_noted_and_left_out(report: ReportDirectory, tmp_path: Path) -> None:
    report.write_run_record(at(1)).write_bytes(b"{")
    report.write_run_record(at(2))
    report.run_json.write_bytes(b'{"schema": 99}')
    reader = HistoryReader()

    reader.add_versions([version(b"<<<<<<< main\n"), version(encode_baseline(baseline()))])
    reader.add_report(tmp_path / ".tokbudget")

    (found,) = reader.histories()
    assert found.versions == 1
    said = ("at 012345678: expected a Baseline, found merge conflict markers", "truncated", "99")
    assert len(reader.notes) == len(said)
    assert all(one in note for one, note in zip(said, reader.notes))


@pytest.mark.parametrize("recorded", [True, False])
def test_a_run_json_adds_what_no_run_record_holds(
    report: ReportDirectory, tmp_path: Path, recorded: bool
) -> None:
    told = {"steps": 9, "seconds": 1.0, "warmup_steps": 1, "warmup_seconds": 0.1, "steady": True}
    result = TestResult(
        nodeid=workload().nodeid,
        outcome="PASS",
        reason="",
        sessions=[{"tok_s": 1000.0, **told}, {"tok_s": 1.0, **told, "steady": False}],
    )
    created = "2026-01-04T00:00:00Z"
    report.write_run_json(
        RunResult(created=created, commit=None, machine=machine(), tests=[result])
    )
    report.write_run_record(at(5, 1000.0 if recorded else 500.0))
    reader = HistoryReader()

    reader.add_report(tmp_path / ".tokbudget")

    (found,) = reader.histories()
    jobs = [one.session.job for one in found.sessions]
    assert jobs == (["new"] if recorded else ["new", "run.json"])
