"""``tokbudget history``, in real repositories and outside one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from pytest_tokbudget.cli import main
from pytest_tokbudget.records.baseline import Baseline, Spread
from pytest_tokbudget.storing.artifacts import ReportDirectory
from pytest_tokbudget.storing.baselines import BaselineDirectory
from pytest_tokbudget.storing.codec import encode_baseline

from .launching.ab_repository import Repository
from .storing.builders import baseline, entry, moved, run, session

NODEID = "tests/test_train.py::test_step"
DAY_S = 86_400


def stored(first_day: int, tok_s: float, jobs: int) -> Baseline:
    """A baseline of one anchor job and ``jobs`` appended ones, a day each."""
    sessions = [
        session(tok_s + one % 3, f"job {first_day + one}", unix_s=(first_day + one) * DAY_S)
        for one in range(jobs + 1)
    ]
    return baseline(anchor=sessions[:1], appended=sessions[1:])


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Three committed versions of one baseline: 1,000, then 970, then 940 tok/s."""
    repository = Repository(tmp_path / "repo", tmp_path / "site")
    repository.top.mkdir()
    repository.git("init", "-q")
    monkeypatch.chdir(repository.top)
    path = BaselineDirectory(Path("baselines")).path_of(
        baseline().workload, baseline().machine_class
    )
    log = [entry("first", [1000.0]), moved([970.0], 1000.0, "a cost"), moved([940.0], 970.0, "b")]
    for index, tok_s in enumerate((1000.0, 970.0, 940.0)):
        one = msgspec.structs.replace(
            stored(20_000 + 10 * index, tok_s, 4),
            learned=Spread(variance=1e-6, degrees=4.0, jobs=5) if index else None,
            log=log[: index + 1],
        )
        repository.commit({str(path): encode_baseline(one).decode()})
    return repository


def test_changes_and_creep_come_from_every_committed_version(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", "--width", "80"]) == 0

    lines = capsys.readouterr().out.splitlines()
    text = "\n".join(lines)
    assert lines[0] == f"HISTORY  {NODEID}"
    assert "15 sessions in 15 jobs" in " ".join(text.split())
    assert "3 committed versions" in " ".join(text.split())
    assert "−3 % from 2024-10-14" in text
    assert "−3.1 % from 2024-10-24" in text
    assert "2026-01-02   970   −3 %        −3 % a cost" in text
    assert "2026-01-02   940 −3.1 %        −6 % b" in text
    assert "all refreshes together: −6 % against the first comparable anchor" in text
    assert max(map(len, lines)) <= 80


def test_run_records_and_files_of_now_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for index, rate in enumerate((1000.0, 1001, 999, 1000, 800, 801, 799, 800)):
        one = run(rate, job=f"job {index}", unix_offset_ns=index * 3600 * 1_000_000_000)
        ReportDirectory(Path(".tokbudget")).write_run_record(one)

    assert main(["history", NODEID]) == 0

    text = " ".join(capsys.readouterr().out.split())
    assert "8 sessions in 8 jobs" in text
    assert "0 committed versions" in text
    assert "−20 % from 1970-01-01 04:00" in text
    assert "anchors" not in text
    assert "note: git gave no history of baselines" in text
    assert "run records count" in text


def test_an_unknown_test_is_named_beside_the_known(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", "test_it.py::gone"]) == 2

    found = capsys.readouterr()
    assert found.out == ""
    assert "'test_it.py::gone'" in found.err
    assert NODEID in found.err


def test_nothing_kept_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["history", "--baselines", "elsewhere"]) == 2

    error = capsys.readouterr().err
    assert "elsewhere" in error
    assert "pytest --tokbudget" in error


def test_without_the_library_and_without_unicode(repository: Repository) -> None:
    script = (
        "import sys; from pytest_tokbudget.cli import main; "
        "sys.modules.update({'ruptures': None} if sys.argv[1:] else {}); "
        "sys.exit(main(['history']))"
    )

    def done(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", script, *arguments],
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
            capture_output=True,
            text=True,
            check=False,
        )

    plain, lacking = done(), done("without")

    assert plain.returncode == 0, plain.stderr
    assert "-3 % from 2024-10-14" in plain.stdout
    assert "####" in plain.stdout
    assert lacking.returncode == 2
    assert lacking.stdout == ""
    assert "pip install 'pytest-tokbudget[history]'" in lacking.stderr
