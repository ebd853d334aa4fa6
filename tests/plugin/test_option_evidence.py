"""``--tokbudget-evidence``: when an evidence pass is taken, and where it shows."""

from __future__ import annotations

import pytest

from .conftest import Project

PIPELINE = """
import queue, threading, time
import pytest

def slow_loader(source, stop):
    while not stop.is_set():
        time.sleep(0.004)
        try:
            source.put(1, timeout=0.1)
        except queue.Full:
            pass

@pytest.mark.tokbudget(steps=50, warmup=5, tolerance="60%")
def test_pipeline(tokbudget):
    recorder, stop = tokbudget.recorder, threading.Event()
    source = recorder.queue(queue.Queue(4), "batches")

    def load():
        with recorder.worker("loader", role="loader"):
            slow_loader(source, stop)

    def train():
        with recorder.worker("trainer", role="trainer", counts=True):
            while not stop.is_set():
                source.get()
                recorder.step_end(tokens=64)

    threads = [threading.Thread(target=one, daemon=True) for one in (load, train)]
    for one in threads:
        one.start()
    found = tokbudget.watch()
    stop.set()
    assert found.tok_s > 0
"""

ENDS = """
import os
import pytest
from steps import step

@pytest.mark.tokbudget(steps=25, warmup=2, tolerance="30%")
def test_step(tokbudget):
    count = 0
    def ends():
        nonlocal count
        count += 1
        if count > 40:
            {ending}
        return step()
    tokbudget(ends)
"""


def test_never_takes_none_and_says_so(project: Project) -> None:
    project.have_baseline()

    assert project.run("--tokbudget").ret == 0

    test = project.only_test
    assert test["hot_frames"] is None
    assert "no evidence pass" in test["unavailable"]["hot_frames"]
    assert project.baseline["reference"] is None


def test_always_shows_hot_frames_threads_and_the_limiting_role(bare_project: Project) -> None:
    bare_project.write("test_pipe.py", PIPELINE)
    bare_project.evidence = "always"
    recorded = bare_project.run("--tokbudget-refresh", "first", "--tokbudget-sessions", "3")
    assert recorded.ret == 0, recorded.stdout.str()
    kept = bare_project.baseline["reference"]

    result = bare_project.run("--tokbudget")

    assert result.ret == 0, result.stdout.str()
    test = bare_project.only_test
    assert test["counters"]["gc_collections"] >= 0
    assert set(test["perturbation"]) == {"stacks"}
    assert "no CUDA device" in test["unavailable"]["ledger"]
    assert test["unavailable"]["native_frames"] == "not asked for (--tokbudget-native)"
    if "stacks" not in test["unavailable"]:
        assert "slow_loader" in {one["function"] for one in test["hot_frames"]}
        assert "slow_loader" in {one["function"] for one in kept["hot_frames"]}
    assert {"loader", "trainer"} <= {one["role"] for one in test["threads"]}
    assert "MainThread" in {one["name"] for one in test["threads"]}
    assert any("loader" in one for one in test["sentences"])
    result.stdout.fnmatch_lines(["*host*loader*"])


def test_on_fail_measures_one_session_more_which_does_not_count(project: Project) -> None:
    project.have_baseline()
    project.evidence = "on-fail"

    result = project.run("--tokbudget", slower=3)

    assert result.ret == 1
    test = project.only_test
    aside = [one["set_aside"] for one in test["sessions"]]
    assert aside == [None, None, None, "measured after the verdict"]
    assert test["perturbation"] is not None


@pytest.mark.parametrize(
    ("ending", "how"),
    [
        ("os._exit(3)", "the measuring process exited with status 3 before it left a result"),
        ("os.kill(os.getpid(), 9)", "the measuring process was killed by SIGKILL"),
        ("raise ValueError('boom')", "ValueError: boom"),
    ],
)
def test_a_session_that_ends_in_its_evidence_pass_does_not_say_there_was_none(
    bare_project: Project, ending: str, how: str
) -> None:
    bare_project.write("test_it.py", ENDS.format(ending=ending))
    bare_project.evidence = "always"

    assert bare_project.run("--tokbudget-measure", "1").ret == 1

    unavailable = bare_project.only_test["unavailable"]
    assert "no evidence pass" not in " ".join(unavailable.values())
    for name in ("hot_frames", "ledger", "sentences"):
        assert unavailable[name].startswith("the evidence pass began and did not end: " + how)


def test_a_session_that_ends_before_its_evidence_pass_had_none(bare_project: Project) -> None:
    bare_project.write("test_it.py", ENDS.format(ending="os._exit(3)").replace("> 40", "> 20"))
    bare_project.evidence = "always"

    assert bare_project.run("--tokbudget-measure", "1").ret == 1

    assert bare_project.only_test["unavailable"]["ledger"] == "no evidence pass was run"


def test_an_unknown_choice_is_a_usage_error(project: Project) -> None:
    project.evidence = "sometimes"

    result = project.run("--tokbudget")

    assert result.ret == 4
    result.stderr.fnmatch_lines(
        ["*tokbudget_evidence: 'sometimes' is not one of always, on-fail, never*"]
    )
