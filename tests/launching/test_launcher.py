"""Sessions that end well and badly, in real processes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from pytest_tokbudget.launching.launcher import ProcessLauncher
from pytest_tokbudget.launching.progress import ProgressSnapshot
from pytest_tokbudget.records.launch import WorkerOutcome, WorkerSpec

from . import behaviours
from .behaviours import FLOOD_LINES

SpecFor = Callable[[str], WorkerSpec]
BEHAVIOURS = behaviours.__name__
LAUNCHER = ProcessLauncher(BEHAVIOURS)


def _children() -> list[psutil.Process]:
    """Whatever this process still has below it, zombies too."""
    return psutil.Process().children(recursive=True)


def _gone(pid: int, within_s: float = 5.0) -> bool:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def _seen(outcome: WorkerOutcome) -> dict[str, Any]:
    assert outcome.result is not None, outcome.failure
    seen: dict[str, Any] = json.loads(outcome.result.longrepr)
    return seen


def test_a_result_comes_back_and_nothing_is_left(spec_for: SpecFor) -> None:
    before = _children()

    outcome = LAUNCHER.run(spec_for("pass"))

    assert outcome.result is not None
    assert outcome.result.status == "passed"
    assert (outcome.failure, outcome.exit_status, outcome.log_tail) == ("", 0, "")
    assert outcome.wall_s > 0
    assert _children() == before


def test_the_worker_starts_as_the_controller_did(
    spec_for: SpecFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COV_CORE_SOURCE", "x")
    monkeypatch.setenv("COVERAGE_PROCESS_START", "x")
    monkeypatch.setenv("MINE", "kept")
    spec = spec_for("pass")

    seen = _seen(LAUNCHER.run(spec))

    assert seen["cwd"] == str(tmp_path)
    assert seen["path"] == spec.sys_path
    assert seen["stdin"] == ""
    assert seen["own_session"]
    environ = seen["environ"]
    assert environ["MINE"] == "kept"
    assert not {"COV_CORE_SOURCE", "COVERAGE_PROCESS_START"} & set(environ)


def test_a_worker_cannot_start_workers(spec_for: SpecFor) -> None:
    """Whatever it starts does not find the spec."""
    assert "TOKBUDGET_WORKER_SPEC" not in _seen(LAUNCHER.run(spec_for("pass")))["environ"]


@pytest.mark.parametrize(
    ("behaviour", "status", "words"),
    [
        ("exit_3", 3, ["exited with status 3", "last words", "setup, no step completed"]),
        ("system_exit", 4, ["exited with status 4"]),
        ("raise", 1, ["exited with status 1", "LookupError: no such model"]),
        ("sigkill", -9, ["killed by SIGKILL", "memory"]),
        (
            "segfault",
            -11,
            ["killed by SIGSEGV (Segmentation fault)", "timing pass, 57 steps", "in segfault"],
        ),
    ],
)
def test_a_death_is_explained(
    spec_for: SpecFor, behaviour: str, status: int, words: list[str]
) -> None:
    outcome = LAUNCHER.run(spec_for(behaviour))

    assert outcome.result is None
    assert outcome.exit_status == status
    assert outcome.came_to == ("timing pass" if behaviour == "segfault" else "setup")
    for each in [behaviour, *words]:
        assert each in outcome.failure


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("hang_with_gil", ["in hang_with_gil"]),
        ("hang_in_python", ["in hang_in_python", "in wait_for_a_batch"]),
    ],
)
def test_a_hang_is_ended_with_the_stacks_of_all_threads(
    spec_for: SpecFor, behaviour: str, words: list[str]
) -> None:
    outcome = LAUNCHER.run(spec_for(behaviour))

    assert outcome.result is None
    assert outcome.exit_status == -6
    for each in ["hung and was ended", "timing pass, 12 steps", *words]:
        assert each in outcome.failure
    assert _children() == []


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("hang_at_exit", ["did not exit", "in wait_for_a_batch"]),
        ("crash_at_exit", ["SIGSEGV", "in crash_at_exit"]),
    ],
)
def test_a_bad_end_after_the_result_is_noted_beside_it(
    spec_for: SpecFor, behaviour: str, words: list[str]
) -> None:
    outcome = LAUNCHER.run(spec_for(behaviour))

    assert outcome.result is not None
    assert outcome.result.status == "passed"
    (section,) = outcome.result.sections
    for each in words:
        assert each in section.text


def test_a_broken_result_is_a_failure(spec_for: SpecFor) -> None:
    outcome = LAUNCHER.run(spec_for("broken_result"))

    assert outcome.result is None
    assert "result.json cannot be read" in outcome.failure


def test_what_an_earlier_session_left_does_not_count(spec_for: SpecFor) -> None:
    assert LAUNCHER.run(spec_for("pass")).result is not None
    assert "in segfault" in LAUNCHER.run(spec_for("segfault")).failure

    outcome = LAUNCHER.run(spec_for("exit_3"))

    assert outcome.result is None
    assert "in segfault" not in outcome.failure


def test_a_module_that_does_not_import(spec_for: SpecFor) -> None:
    outcome = ProcessLauncher("no_such_worker").run(spec_for("pass"))

    assert outcome.result is None
    assert "could not be started" in outcome.failure
    assert "No module named 'no_such_worker'" in outcome.failure


def test_a_directory_that_is_gone(spec_for: SpecFor) -> None:
    spec = msgspec.structs.replace(spec_for("pass"), cwd="/no/such/directory")

    outcome = LAUNCHER.run(spec)

    assert outcome.result is None
    assert "/no/such/directory" in outcome.failure


def test_a_flood_of_output_is_passed_on_whole_and_kept_short(spec_for: SpecFor) -> None:
    parts: list[str] = []

    outcome = ProcessLauncher(BEHAVIOURS, on_output=parts.append).run(spec_for("flood"))

    assert "".join(parts) == "".join(f"line {number} ä\n" for number in range(FLOOD_LINES))
    assert outcome.log_tail.endswith(f"line {FLOOD_LINES - 1} ä")
    assert len(outcome.log_tail) < 20_000


def test_progress_is_shown_while_the_worker_runs(spec_for: SpecFor, tmp_path: Path) -> None:
    seen: list[ProgressSnapshot] = []

    def look(moment: ProgressSnapshot) -> None:
        seen.append(moment)
        if moment.counting_marks > 2:
            (tmp_path / "seen").touch()

    outcome = ProcessLauncher(BEHAVIOURS, on_progress=look).run(spec_for("marks"))

    assert outcome.result is not None
    assert seen[-1].counting_marks > 2
    assert seen[-1].phase == 1


@pytest.mark.parametrize("behaviour", ["forget_children", "forget_and_crash"])
def test_forgotten_children_are_ended(spec_for: SpecFor, tmp_path: Path, behaviour: str) -> None:
    outcome = LAUNCHER.run(spec_for(behaviour))

    if behaviour == "forget_children":
        children: list[int] = json.loads(outcome.result.longrepr if outcome.result else "")
    else:
        children = json.loads((tmp_path / "children").read_text())
    assert len(children) == 2
    for pid in children:
        assert _gone(pid, within_s=1)
        assert f"(pid {pid})" in outcome.log_tail


def test_shared_memory_of_a_dead_worker_is_freed(spec_for: SpecFor, tmp_path: Path) -> None:
    LAUNCHER.run(spec_for("leak_shared_memory"))

    assert not Path("/dev/shm", (tmp_path / "shared").read_text()).exists()


def test_whatever_is_raised_meanwhile_ends_the_worker(spec_for: SpecFor, tmp_path: Path) -> None:
    def interrupt(_moment: ProgressSnapshot) -> None:
        if (tmp_path / "pids").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ProcessLauncher(BEHAVIOURS, on_progress=interrupt).run(spec_for("wait_for_the_end"))

    pids = json.loads((tmp_path / "pids").read_text())
    for pid in [pids["guard"], pids["worker"], *pids["children"]]:
        assert _gone(pid, within_s=1)
    assert os.getpid() not in pids.values()
