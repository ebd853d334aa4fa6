"""The throughput tests of the example: one for each size that this machine measures.

``DFLASH_SIZE`` names another size, ``DFLASH`` turns knobs (``knobs.py``). Knobs are no part of the
declared workload: they stand for changes of the code and meet the baseline of the code without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .config import SIZES, sizes_here
from .knobs import read_knobs
from .pipeline import DFlashPipeline

if TYPE_CHECKING:
    from pytest_tokbudget.entry.fixture import Tokbudget

# The simulated window is nine whole cycles of 3 × 45 steps between checkpoints, and begins well
# after one, so that no session has a checkpoint more than another. The cpu size shares two cores
# with whatever else runs there: the same code made 2,700 to 7,500 tok/s within two hours, so that
# all its spread supports is to notice when three quarters of the throughput are lost. The h200 size
# waits for its host most of the time: five sessions spread by 2 % on one host, by 10 % on another.
BUDGETS: dict[str, dict[str, Any]] = {
    "simulated": {"steps": 1215, "warmup": 290, "tolerance": "3%"},
    "cpu": {"steps": 120, "tolerance": "75%", "sessions": "3:5"},
    "h200": {"steps": 200, "tolerance": "20%", "sessions": "2:4"},
    "eight": {"steps": 600, "tolerance": "5%"},
}


def measured(name: str) -> object:
    """Return the parameter for one size, with its budget and declaration as a marker."""
    marker = pytest.mark.tokbudget(
        token_kind="real", workload=SIZES[name].declaration(), **BUDGETS[name]
    )
    return pytest.param(name, id=name, marks=marker)


@pytest.mark.parametrize("size", [measured(size.name) for size in sizes_here()])
def test_dflash(tokbudget: Tokbudget, size: str) -> None:
    chosen = SIZES[size]
    with DFlashPipeline(chosen, read_knobs(chosen), recorder=tokbudget.recorder) as pipeline:
        tokbudget.watch(pipeline)
