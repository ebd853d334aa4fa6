"""Specs for real worker processes that run ``behaviours.py``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_tokbudget.records.launch import WorkerSpec

SpecFor = Callable[[str], WorkerSpec]


@pytest.fixture
def spec_for(tmp_path: Path) -> SpecFor:
    """The spec of a session that behaves as it is told; its cwd is ``tmp_path``."""

    def build(behaviour: str) -> WorkerSpec:
        return WorkerSpec(
            nodeid=behaviour,
            args=[],
            argv=["pytest", "-q"],
            cwd=str(tmp_path),
            rootdir=str(tmp_path),
            sys_path=list(sys.path),
            result_path=str(tmp_path / "result.json"),
            progress_path=str(tmp_path / "progress"),
            session_index=0,
            job="job",
        )

    return build
