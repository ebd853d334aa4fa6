"""Every figure of run.json by its name; what is unknown is unknown, and what is none an error."""

from __future__ import annotations

import pytest

from pytest_tokbudget.analysis.figures_by_name import FIGURES, SHORT_NAMES, figure, unit_of
from pytest_tokbudget.analysis.quantities import parse_figure
from pytest_tokbudget.errors import QuantityError, UsageError
from pytest_tokbudget.records.result import DeviceResult, StepMs, TestResult


def result(**fields: object) -> TestResult:
    return TestResult(nodeid="t", outcome="PASS", reason="", **fields)  # type: ignore[arg-type]


def test_figures_are_found_by_name_and_the_largest_of_several_is_meant() -> None:
    devices = [
        DeviceResult(uuid=None, name="a", idle_pct=3.0, ledger={"sync": 1.0}),
        DeviceResult(uuid=None, name="b", idle_pct=9.0, ledger={"sync": 0.5}),
    ]
    found = result(
        step_ms=StepMs(p50=1.0, p95=2.0, max=3.0),
        devices=devices,
        counters={"syncs_stream": 2.0, "syncs_device": 1.0, "memsets": 0.0},
    )
    assert figure(found, "step_ms.p95") == (2.0, "")
    assert figure(found, "idle_pct") == figure(found, "devices.idle_pct") == (9.0, "")
    assert figure(found, "devices.ledger.sync") == (1.0, "")
    assert figure(found, "counters.memsets") == (0.0, "")
    assert figure(found, "syncs_per_step") == (3.0, "")


def test_without_any_sync_among_counters_there_was_none() -> None:
    assert figure(result(counters={"memsets": 1.0}), "syncs_per_step") == (0.0, "")
    assert figure(result(counters={}), "syncs_per_step")[0] is None
    assert figure(result(counters={"gc_collections": 1.0}), "syncs_per_step")[0] is None


def test_what_is_not_known_gives_the_reason_and_is_not_zero() -> None:
    bare = result(unavailable={"step_ms": "no marks", "counters": "no evidence pass"})
    assert figure(bare, "step_ms.max") == (None, "no marks")
    assert figure(bare, "peak_memory") == (None, "no evidence pass")
    half = [DeviceResult(uuid=None, name="a", idle_pct=3.0), DeviceResult(uuid=None, name="b")]
    assert figure(result(devices=half, unavailable={"ledger": "x"}), "idle_pct")[0] is None
    assert figure(result(counters={"memsets": 1.0}), "counters.launches")[0] is None


@pytest.mark.parametrize("name", ["idle", "step_ms", "step_ms.p99", "counters.", "", "nodeid"])
def test_an_unknown_figure_names_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError, match=r"step_ms\.p95"):
        unit_of(name)


def test_every_listed_name_is_a_field_of_run_json() -> None:
    for name in (*FIGURES, *SHORT_NAMES):
        unit_of(name)
        assert figure(result(), name)[0] is None


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        ("40 ms", "ms", 40.0),
        ("1.5s", "ms", 1500.0),
        ("300 us", "ms", 0.3),
        (40, "ms", 40.0),
        ("2 ms", "s", 0.002),
        ("10%", "%", 10.0),
        (0, "%", 0.0),
        ("70 GiB", "bytes", 70 * 2**30),
        ("70 GB", "bytes", 70e9),
        ("512 MiB", "bytes", 2**29),
        (1024, "bytes", 1024.0),
        (0, "", 0.0),
        ("1,200", "", 1200.0),
    ],
)
def test_a_figure_is_parsed_in_its_unit(value: object, unit: str, expected: float) -> None:
    assert parse_figure(value, unit) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        ("40", "ms"),
        ("40 GiB", "ms"),
        ("40 ms", "bytes"),
        ("10", "%"),
        (10, "%"),
        (0.1, "%"),
        ("10%", ""),
        (-1, "ms"),
        ("-1 ms", "ms"),
        (float("nan"), ""),
        (float("inf"), "ms"),
        (True, ""),
        (None, "ms"),
        ([], "bytes"),
    ],
)
def test_what_is_no_such_figure_is_refused_with_an_example(value: object, unit: str) -> None:
    with pytest.raises(QuantityError, match="write "):
        parse_figure(value, unit)
