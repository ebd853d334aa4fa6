from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from pytest_tokbudget.analysis.native_frames import native_table
from pytest_tokbudget.evidence.native import NativeSamples, NativeStacks
from pytest_tokbudget.records.base import Unavailable
from tests.evidence.fake_pyspy import fake_pyspy

ROOT = str(Path(__file__).parents[2])
pytestmark = pytest.mark.usefixtures("no_children_left")


def put_in_order(stop: threading.Event) -> None:
    numbers = np.random.default_rng(0).random(200_000)
    while not stop.is_set():
        numbers.copy().sort()


@pytest.mark.alone
def test_a_c_function_is_named_under_the_python_that_called_it() -> None:
    stop = threading.Event()
    threads = [threading.Thread(target=put_in_order, args=(stop,), name="sorter")]
    threads.append(threading.Thread(target=stop.wait, name="idler"))
    for one in threads:
        one.start()
    native = NativeStacks()
    try:
        assert native.begin() is None
        time.sleep(2.0)
        native.end()
    finally:
        stop.set()
        for one in threads:
            one.join()

    found = native.record()
    assert isinstance(found, NativeSamples)
    table = native_table(found.samples, found.cpu_s, found.system_s, found.rate_hz, ROOT)
    first = table.frames[0]
    assert first.library.startswith("_multiarray_umath")
    assert (first.caller, first.file) == ("put_in_order", "tests/evidence/test_native_stacks.py")
    assert first.threads == ["sorter"]
    assert sum(one.share for one in table.frames if one.threads == ["sorter"]) > 0.9


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("refused", "SYS_PTRACE"),
        ("old", "cannot unwind native stacks"),
        ("silent", "ended with status 3"),
    ],
)
def test_what_cannot_be_sampled_is_told_at_once(tmp_path: Path, how: str, reason: str) -> None:
    assert reason in str(NativeStacks(fake_pyspy(tmp_path, how)).begin())


def test_a_torn_file_is_told(tmp_path: Path) -> None:
    native = NativeStacks(fake_pyspy(tmp_path, "torn"))
    assert native.begin() is None
    native.end()

    found = native.record()
    assert isinstance(found, Unavailable)
    assert "cannot be read" in found.reason


def test_an_interrupted_begin_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: object) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(NativeStacks, "_fitting_hz", interrupted)
    with pytest.raises(KeyboardInterrupt):
        NativeStacks(fake_pyspy(tmp_path, "torn")).begin()


def test_a_sampler_leaves_no_file_if_this_process_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    native = NativeStacks(fake_pyspy(tmp_path, "torn"))
    assert native.begin() is None
    assert list((tmp_path / "tmp").iterdir()) == []
    native.end()
