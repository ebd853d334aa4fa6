"""A baseline that was edited, merged or damaged is refused, with file, field, value and remedy."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from pytest_tokbudget.records.baseline import Baseline
from pytest_tokbudget.storing.baselines import BaselineDirectory
from pytest_tokbudget.storing.codec import decode, encode_baseline

from .builders import STEADY, baseline, entry, h200_class, session, sessions, workload
from .edited import Edit, drop, edit_file, put, refreshed, refusal


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A baseline that was refreshed once since it was first made."""
    return refreshed(tmp_path, times=2)


IMPOSSIBLE = [
    (put(-1e-6, "learned", "variance"), "learned.variance is -1e-06, expected 0 or more"),
    (put(-1.0, "learned", "degrees"), "learned.degrees is -1.0, expected 0 or more"),
    (put(0, "learned", "jobs"), "learned.jobs is 0, expected 1 or more"),
    (put(-5.0, "anchor", 2, "tok_s"), "anchor[2].tok_s is -5.0, expected a number above 0"),
    (put(0, "appended", 0, "tok_s"), "appended[0].tok_s is 0.0, expected a number above 0"),
    (put(0, "anchor", 0, "seconds"), "anchor[0].seconds is 0.0, expected a number above 0"),
    (put(0, "anchor", 0, "steps"), "anchor[0].steps is 0, expected 1 or more"),
    (put(-1, "anchor", 0, "warmup_steps"), "anchor[0].warmup_steps is -1, expected 0 or more"),
    (put(-0.5, "anchor", 0, "warmup_seconds"), "anchor[0].warmup_seconds is -0.5"),
    (put(-1, "anchor", 0, "unix_s"), "anchor[0].unix_s is -1, expected 0 or more"),
    (put(0, "anchor", 0, "usable_cores"), "anchor[0].usable_cores is 0, expected 1 or more"),
    (put(1.5, "anchor", 0, "steal_share"), "anchor[0].steal_share is 1.5, expected a share"),
    (put(-0.1, "anchor", 0, "core_wait_share"), "anchor[0].core_wait_share is -0.1"),
    (put(2.0, "anchor", 0, "power_capped_share"), "anchor[0].power_capped_share is 2.0"),
    (
        put(0.0, "anchor", 1, "canaries_ms", "around/host_loop"),
        "anchor[1].canaries_ms['around/host_loop'] is 0.0, expected a number above 0",
    ),
    (
        put(-1, "anchor", 1, "counters", "counts", "syncs_stream"),
        "anchor[1].counters.counts['syncs_stream'] is -1, expected 0 or more",
    ),
    (
        put([3, 0], "anchor", 1, "counters", "counts", "memsets"),
        "anchor[1].counters.counts['memsets'][1] is 0, expected 1 or more",
    ),
    (
        put([5, 2], "anchor", 1, "counters", "varying", "memsets"),
        "anchor[1].counters.varying['memsets'] is [5, 2], expected the smaller end first",
    ),
    (put(0, "log", 1, "new_tok_s"), "log[1].new_tok_s is 0.0, expected a number above 0"),
    (put(-3, "log", 1, "old_tok_s"), "log[1].old_tok_s is -3.0, expected a number above 0"),
    (put(-101, "log", 1, "change_pct"), "log[1].change_pct is -101.0, expected a percentage"),
    (put([-101, 5], "log", 1, "change_ci_pct"), "log[1].change_ci_pct[0] is -101.0, expected"),
    (put([5, 1], "log", 1, "change_ci_pct"), "log[1].change_ci_pct is [5.0, 1.0], expected the"),
]


@pytest.mark.parametrize(("edit", "said"), IMPOSSIBLE, ids=[said for _, said in IMPOSSIBLE])
def test_a_figure_that_no_measurement_gives_is_named(stored: Path, edit: Edit, said: str) -> None:
    edit_file(stored, edit)

    assert said in refusal(stored)


CONTRADICTED = [
    (put(400.0, "learned", "degrees"), "learned.degrees is 400.0, expected 10 or less"),
    (put(None, "learned"), "learned is null, expected the spread of the baseline that log[-1]"),
    (drop("learned"), "learned is null, expected the spread of the baseline that log[-1]"),
    (put(None, "log", 1, "old_tok_s"), "learned is a spread, expected null: log[-1] replaced no"),
    (put([], "log"), "log is empty, expected one entry or more"),
    (put([], "anchor"), "anchor is empty, expected one entry or more"),
    (put(64, "anchor", 3, "usable_cores"), "anchor[3].usable_cores is 64, expected 16 as in"),
    (put(8, "appended", 0, "usable_cores"), "appended[0].usable_cores is 8, expected 16 as in"),
    (put(None, "anchor", 3, "usable_cores"), "anchor[3].usable_cores is null, expected a value"),
    (drop("anchor", 2, "counters"), "anchor[2].counters is null, expected a value as in the"),
]


@pytest.mark.parametrize(
    ("edit", "said"),
    CONTRADICTED,
    ids=[f"{at}-{said}" for at, (_, said) in enumerate(CONTRADICTED)],
)
def test_what_the_rest_of_the_file_contradicts_is_named(
    stored: Path, edit: Edit, said: str
) -> None:
    edit_file(stored, edit)

    assert said in refusal(stored)


@pytest.mark.parametrize("kept", [1, 2])
def test_an_anchor_too_small_for_a_verdict_is_refused(tmp_path: Path, kept: int) -> None:
    few = baseline(STEADY[:kept])
    path = BaselineDirectory(tmp_path).path_of(few.workload, few.machine_class)
    path.parent.mkdir()
    path.write_bytes(encode_baseline(few))

    assert f"anchor has {kept} of the sessions that a verdict rests on, expected 3" in refusal(path)
    assert decode(path.read_bytes(), Baseline, path=path, what_next="").anchor, "to be looked at"


@pytest.mark.parametrize("rates", [STEADY, (990.0, 1010.0, 1000.0), (500.0, 1000.0, 1600.0)])
@pytest.mark.parametrize("replaced", [STEADY, (700.0, 1000.0, 1900.0), (1000.0,) * 4])
def test_a_baseline_that_replaced_one_of_any_spread_is_read(
    tmp_path: Path, replaced: tuple[float, ...], rates: tuple[float, ...]
) -> None:
    store = BaselineDirectory(tmp_path)
    for each in (replaced, rates):
        store.replace_anchor(workload(), h200_class(), sessions(each), entry(rates=each))
        store.flush()

    found = store.load(workload(), h200_class())

    assert isinstance(found, Baseline)
    assert found.learned is not None


def test_a_pool_may_append_sessions_of_hosts_with_other_cores(tmp_path: Path) -> None:
    pool = h200_class(pool="night")
    store = BaselineDirectory(tmp_path)
    anchor = [session(rate, usable_cores=16) for rate in STEADY]
    store.replace_anchor(workload(), pool, anchor, entry())
    store.flush()
    store.append(workload(), pool, [session(1000.0, "other host", usable_cores=8)])
    store.flush()

    assert isinstance(store.load(workload(), pool), Baseline)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "null"])
def test_what_is_no_number_is_none(stored: Path, value: str) -> None:
    text, edited = re.subn(r'"variance": [^,\n]+', f'"variance": {value}', stored.read_text())
    assert edited == 1
    stored.write_text(text)

    assert "expected a Baseline, found" in refusal(stored)


def test_many_flaws_are_counted_and_the_first_shown(stored: Path) -> None:
    edit_file(stored, *(put(0, "anchor", at, "tok_s") for at in range(5)))

    text = refusal(stored)

    assert "anchor[2].tok_s" in text
    assert "anchor[3].tok_s" not in text
    assert "; and 2 more; restore" in text


@pytest.mark.parametrize("times", [1, 2, 3])
def test_what_refreshes_and_appends_write_is_read(tmp_path: Path, times: int) -> None:
    path = refreshed(tmp_path, times=times)

    found = BaselineDirectory(tmp_path).load(workload(), h200_class())

    assert isinstance(found, Baseline)
    assert len(found.log) == times
    assert msgspec.json.decode(path.read_bytes(), type=Baseline) == found


def test_the_baselines_of_this_repository_are_read() -> None:
    paths = sorted((Path(__file__).parents[2] / "baselines").glob("*/*.json"))

    assert paths
    for path in paths:
        assert decode(path.read_bytes(), Baseline, path=path, what_next="").anchor
