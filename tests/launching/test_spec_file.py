"""The spec on its way to the worker, the result on its way back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_tokbudget.errors import LaunchError
from pytest_tokbudget.launching.spec_file import (
    SPEC_VARIABLE,
    read_result,
    take_spec,
    write_result,
    write_spec,
)
from pytest_tokbudget.records.launch import CapturedSection, WorkerResult, WorkerSpec

SpecFor = Callable[[str], WorkerSpec]


def test_a_spec_is_taken_once(spec_for: SpecFor) -> None:
    spec = spec_for("test_a.py::test_ä[x-1]")
    environ = {SPEC_VARIABLE: str(write_spec(spec)), "HOME": "/"}

    assert take_spec(environ) == spec
    assert environ == {"HOME": "/"}
    with pytest.raises(LaunchError, match="pytest --tokbudget"):
        take_spec(environ)


@pytest.mark.parametrize("text", ["", "{", "{}"])
def test_a_broken_spec_names_its_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "spec"
    path.write_text(text)

    with pytest.raises(LaunchError, match=str(path)):
        take_spec({SPEC_VARIABLE: str(path)})


def test_a_result_round_trips_and_replaces_whole(spec_for: SpecFor) -> None:
    spec = spec_for("test_a.py::test_b")
    assert read_result(spec) is None

    write_result(spec, WorkerResult(status="passed"))
    last = WorkerResult(status="failed", sections=[CapturedSection(title="a", text="b")])
    write_result(spec, last)

    assert read_result(spec) == last
    assert [path.name for path in Path(spec.result_path).parent.iterdir()] == ["result.json"]


def test_a_broken_result_names_its_file(spec_for: SpecFor) -> None:
    spec = spec_for("test_a.py::test_b")
    Path(spec.result_path).write_text('{"status": 3}')

    with pytest.raises(LaunchError, match=r"result\.json"):
        read_result(spec)
