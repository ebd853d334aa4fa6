"""What the tests of samplers share."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest


@pytest.fixture
def no_children_left() -> Iterator[None]:
    """Look that no process is left which was not there before."""
    before = {one.pid for one in psutil.Process().children(recursive=True)}
    yield
    left = [one for one in psutil.Process().children(recursive=True) if one.pid not in before]
    assert left == []
