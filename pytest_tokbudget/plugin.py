"""The pytest hooks, and nothing else. Imported at every pytest start: nothing heavy here."""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from .entry import options

if TYPE_CHECKING:
    from .entry.fixture import Tokbudget

INITIAL_SYS_PATH = tuple(sys.path)
"""``sys.path`` before any conftest: what a fresh process must start with."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare options and ini keys."""
    options.add_options(parser)


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(
    config: pytest.Config,
) -> Generator[None, object, object]:
    """One xdist worker is one process too many: measured tests bring their own."""
    if options.is_enabled(config) and config.getoption("numprocesses", None) == 1:
        config.option.numprocesses = 0
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    """Choose what this process is: controller, worker, in-process, or off."""
    config.addinivalue_line(
        "markers",
        "tokbudget(steps, warmup, tokens, tolerance, floor, workload, token_kind, sessions): "
        "demands of a throughput test (run with --tokbudget)",
    )
    if options.is_enabled(config):
        from .entry import modes

        modes.configure(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without ``--tokbudget``, skip throughput tests before any of their fixtures is built."""
    if not options.is_enabled(config):
        skip = pytest.mark.skip(reason="throughput test: run with --tokbudget")
        for item in items:
            if "tokbudget" in getattr(item, "fixturenames", ()):
                item.add_marker(skip, append=False)


@pytest.fixture
def tokbudget(request: pytest.FixtureRequest) -> Tokbudget:
    """Measure the throughput of a training pipeline and judge it against its baseline.

    ``tokbudget(step)`` runs one step at a time; ``tokbudget.watch(pipeline)`` measures a pipeline
    that runs itself and marks its steps through ``tokbudget.recorder``.
    """
    if not options.is_enabled(request.config):
        pytest.skip("throughput test: run with --tokbudget")
    from .entry import modes

    return modes.fixture(request)
