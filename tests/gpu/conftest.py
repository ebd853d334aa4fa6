"""The tests that run on a real device."""

from __future__ import annotations

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the gate's own test first: it finds a machine unfit whose GPU another process uses.

    The other tests leave a CUDA context, and memory with it, in the process that runs them.
    """
    items.sort(key=lambda item: "test_gate_gpu" not in item.nodeid)
