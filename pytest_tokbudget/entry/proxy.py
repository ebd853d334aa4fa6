"""The controller's stand-in for a measured item: its body and fixtures never run here."""

from __future__ import annotations

from collections.abc import Callable

import pytest

FIXTURE = "tokbudget"


def is_measured(item: pytest.Item) -> bool:
    """Whether ``item`` asks for the fixture, by name or through another fixture."""
    return FIXTURE in getattr(item, "fixturenames", ())


def make_proxy(item: pytest.Item, run: Callable[[pytest.Item], None]) -> None:
    """Let ``run(item)`` stand for the body, and build no fixture.

    The item stays what it is: skipif, xfail, durations, JUnit and ``-x`` see a native test.
    Reruns are off, whatever marks or ini say.
    """
    setattr(item, "setup", _nothing)  # noqa: B010 - a method is replaced on purpose
    # What was not set up cannot be torn down: a unittest.TestCase would fail there.
    setattr(item, "teardown", _nothing)  # noqa: B010
    setattr(item, "runtest", lambda: run(item))  # noqa: B010
    if item.config.pluginmanager.hasplugin("rerunfailures"):
        item.add_marker(pytest.mark.flaky(reruns=0), append=False)


def _nothing() -> None:
    """Set nothing up, and tear nothing down."""
