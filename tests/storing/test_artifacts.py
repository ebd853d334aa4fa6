from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from pytest_tokbudget.errors import NewerSchemaError, StoreError, UnreadableError
from pytest_tokbudget.records.baseline import Baseline
from pytest_tokbudget.records.result import RunResult, TestResult
from pytest_tokbudget.records.run import RunRecord
from pytest_tokbudget.storing.artifacts import (
    MOST_RUN_RECORDS,
    ReportDirectory,
    load_run_json,
    load_run_record,
)
from pytest_tokbudget.storing.baselines import BaselineDirectory
from pytest_tokbudget.storing.refresh import candidate
from pytest_tokbudget.storing.refresh_log import RefreshTerms

from .builders import h200_class, run, runs, workload

RESULT = RunResult(
    created="2026-01-02T03:04:05Z",
    commit="c0ffee",
    machine=None,
    tests=[TestResult(nodeid="a.py::test_a", outcome="PASS", reason="fine", tok_s=1000.5)],
)


def _later(seconds: int) -> RunRecord:
    made = run()
    return msgspec.structs.replace(made, unix_offset_ns=made.unix_offset_ns + seconds * 10**9)


def test_run_json_survives_and_is_made_for_reading(tmp_path: Path) -> None:
    path = ReportDirectory(tmp_path / "report").write_run_json(RESULT)

    assert path == tmp_path / "report" / "run.json"
    assert load_run_json(path) == RESULT
    assert path.read_text().startswith('{\n  "schema": 1,\n  "created": "2026')


def test_the_directory_ignores_itself_in_git(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)

    ReportDirectory(tmp_path / ".tokbudget").write_run_json(RESULT)

    status = subprocess.run(
        ["git", "-C", str(tmp_path), "status", "--porcelain", "-uall"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert status.stdout == ""


def test_our_own_directory_is_ignored_even_if_something_stands_in_it(tmp_path: Path) -> None:
    own = tmp_path / ".tokbudget"
    own.mkdir()
    (own / "note").write_text("")

    ReportDirectory(own).write_run_json(RESULT)

    assert (own / ".gitignore").read_text().splitlines()[-1] == "*"


def test_a_directory_of_other_peoples_files_is_not_hidden_from_git(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text("")

    ReportDirectory(tmp_path).write_run_json(RESULT)

    assert not (tmp_path / ".gitignore").exists()


def test_a_gitignore_that_someone_wrote_stays(tmp_path: Path) -> None:
    own = tmp_path / ".tokbudget"
    own.mkdir()
    (own / ".gitignore").write_text("mine\n")

    ReportDirectory(own).write_run_json(RESULT)

    assert (own / ".gitignore").read_text() == "mine\n"


def test_run_records_are_kept_whole_and_the_latest_is_found(tmp_path: Path) -> None:
    report = ReportDirectory(tmp_path)
    assert report.latest() is None

    newest = report.write_run_record(_later(100))
    older = report.write_run_record(_later(0))

    assert newest.parent == tmp_path / "runs"
    assert newest.name.startswith("20231114T221515.000000Z-tests-test_train-py-test_step-")
    assert older.name.startswith("20231114T221335.000000Z-")
    assert load_run_record(newest) == _later(100)
    assert report.latest() == newest


def test_two_sessions_that_end_together_are_both_kept(tmp_path: Path) -> None:
    report = ReportDirectory(tmp_path)

    assert report.write_run_record(run()) != report.write_run_record(run())


def test_the_oldest_records_go_and_nothing_else_does(tmp_path: Path) -> None:
    report = ReportDirectory(tmp_path)
    paths = [report.write_run_record(_later(0))]
    foreign = tmp_path / "runs" / "00000000-mine.json"
    foreign.write_text("{}")
    template = paths[0].read_bytes()
    for number in range(1, MOST_RUN_RECORDS):
        name = paths[0].name.replace("20231114T", f"202312{number % 28 + 1:02d}T")
        path = paths[0].with_name(name.replace("-tests-", f"-n{number}-tests-"))
        path.write_bytes(template)
        paths.append(path)
    assert all(path.exists() for path in paths)

    report.write_run_record(_later(10**7))

    assert not paths[0].exists()
    assert all(path.exists() for path in paths[1:])
    assert foreign.exists()


def test_a_candidate_stands_as_it_would_in_the_baselines(tmp_path: Path) -> None:
    terms = RefreshTerms(reason="no baseline yet", job="j", today="2026-01-02")
    made = candidate(runs([1000.0, 1000.0, 1000.0]), terms=terms)

    path = ReportDirectory(tmp_path).write_candidate(made)

    assert path.relative_to(tmp_path).parts[0] == "candidates"
    loaded = BaselineDirectory(tmp_path / "candidates").load(workload(), h200_class())
    assert isinstance(loaded, Baseline)
    assert loaded.anchor == made.anchor


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError, match=f"{tmp_path / 'file'}: cannot be made"):
        ReportDirectory(tmp_path / "file").write_run_json(RESULT)


def test_bad_artifacts_are_refused_like_bad_baselines(tmp_path: Path) -> None:
    path = tmp_path / "run.json"

    with pytest.raises(UnreadableError, match="no such file; measure again"):
        load_run_json(path)
    path.write_text('{"schema": 1, "crea')
    with pytest.raises(UnreadableError, match="truncated"):
        load_run_json(path)
    path.write_text('{"schema": 2}')
    with pytest.raises(NewerSchemaError):
        load_run_record(path)
