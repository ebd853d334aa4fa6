"""The calibration a person reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_tokbudget.analysis.calibration import Calibration, Steps
from pytest_tokbudget.analysis.smallest_tolerance import Held
from pytest_tokbudget.reporting.calibration_text import render_calibration

FOUND = Calibration(
    nodeid="tests/test_train.py::test_step",
    tolerance=0.05,
    jobs=[[1000.0, 1010.0, 1020.0], [980.0, 980.0, 1000.0]],
    unsteady=1,
    spread=0.01,
    spread_ci=(0.006, 0.025),
    between=2.5,
    assumed_between=1.0,
    canary="interleaved/tiny_step",
    canary_kept=0.25,
    steps=Steps(steps=200, neighbours=0.31, independent=45.2, drift_pct=-0.2, drifting=1),
    warmup_steps=(20, 24),
    warmup_s=2.0,
    session_s=30.0,
    first=[Held(0.061, 1.1), Held(0.05, 1.3), Held(0.045, 1.4)],
    settled=[Held(0.027, 1.0), Held(0.025, 1.1), Held(0.023, 1.1)],
    pairs=Held(0.011, 5.0),
)


def test_what_a_person_needs_is_there() -> None:
    text = render_calibration(FOUND)
    for part in (
        "CALIBRATION  tests/test_train.py::test_step",
        "6 sessions in 2 jobs; 1 never became steady",
        "1 % within a job (95 % interval 0.6 % to 2.5 %)",
        "2.5 times that within (of 2 jobs, a guess: 1 is assumed)",
        "leaves 50 % of the spread: it helps",
        "200 steps are worth 45 independent ones",
        "20 to 24 steps, 2 s (median)",
        "6.1 %, 33 s",
        "1.1 %, 5 min",
        "holds from a first baseline and 2 sessions on.",
    ):
        assert part in " ".join(text.split()) or part in text


def test_the_picture_shows_every_session_and_the_median() -> None:
    first, second = (line for line in render_calibration(FOUND).splitlines() if "  job " in line)
    assert first.count("o") - 1 == 3
    assert second.index("2") < first.rindex("o")
    assert len(first) == len(second) == 78


@pytest.mark.parametrize("width", [40, 60, 80, 100])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_no_line_is_wider_than_asked(width: int, encoding: str) -> None:
    text = render_calibration(FOUND, width=width, encoding=encoding)
    text.encode(encoding)
    assert max(map(len, text.splitlines())) <= width


def test_what_holds_nowhere_is_said() -> None:
    nowhere = Calibration(
        **{
            **{name: getattr(FOUND, name) for name in FOUND.__dataclass_fields__},
            "tolerance": 0.001,
            "between": None,
            "canary": None,
            "pairs": None,
        }
    )
    text = " ".join(render_calibration(nowhere).split())
    assert "tolerance of 0.1 % holds in no way here" in text
    assert "one job tells nothing of others" in text
    assert "A/B of up to 12 pairs none" in text


@pytest.mark.parametrize(
    ("kept", "told"),
    [(1.21, "leaves 110 % of the spread: it does not help"), (50_200, "224 times as wide")],
)
def test_a_canary_that_widens_the_spread_is_no_help(kept: float, told: str) -> None:
    assert told in " ".join(render_calibration(replace(FOUND, canary_kept=kept)).split())
