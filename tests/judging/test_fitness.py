"""An unfit machine is named before the code is blamed; a busy one fails no test by itself."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pytest_tokbudget.judging import judge
from pytest_tokbudget.judging.fitness import flaws
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.baseline import Baseline
from pytest_tokbudget.records.conditions import Conditions
from pytest_tokbudget.records.machine import Accelerator
from pytest_tokbudget.records.run import RunRecord
from pytest_tokbudget.records.telemetry import DeviceTelemetry, MachineWatch
from pytest_tokbudget.records.verdict import Outcome

from .cases import baseline, budget, session

RATES = [1000.0, 1001.0, 999.0, 1000.0, 1000.0]


def run(tok_s: float = 1000.0, devices: tuple[str, ...] = ("cuda:0",), **seen: Any) -> RunRecord:
    conditions = Conditions(**{"seconds": 5.0, "usable_cores": 16, **seen})
    plain = session(tok_s, devices=list(devices), conditions=conditions)
    gpus = [Accelerator(index=3 - n, uuid=f"GPU-{n}", product="H200") for n in range(2)]
    machine = msgspec.structs.replace(plain.machine, accelerators=gpus)
    return msgspec.structs.replace(plain, machine=machine)


def watched(**device: Any) -> MachineWatch:
    fields = {"uuid": "GPU-0", "index": 3, "product": "H200", "samples": 20, **device}
    return MachineWatch(seconds=4.0, samples=20, devices=[DeviceTelemetry(**fields)])


def known(**fields: Any) -> Baseline:
    base = baseline(RATES)
    return msgspec.structs.replace(
        base, anchor=[msgspec.structs.replace(one, **fields) for one in base.anchor]
    )


UNFIT: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("tracer", {"tracers": ["coverage.Collector (sys.settrace)"]}, {}, "without debugger"),
    ("blocking", {"launch_blocking": True}, {}, "CUDA_LAUNCH_BLOCKING is set"),
    (
        "throttled",
        {"watch": watched(throttled_share=0.1, reasons={"hardware thermal slowdown": 0.1})},
        {},
        "was throttled in 10 % of the timing pass (hardware thermal slowdown)",
    ),
    ("shared", {"watch": watched(foreign=["python (42)"])}, {}, "python (42) shares H200 GPU-0"),
    (
        "controller",
        {"watch": watched(foreign=["pytest (7)"]), "of_controller": ["pytest (7)"]},
        {},
        "The controlling process pytest (7) holds memory",
    ),
    (
        "capped",
        {"watch": watched(reasons={"software power cap": 0.5})},
        {"power_capped_share": 0.0},
        "held back by its power limit in 50 %",
    ),
    ("cores", {"usable_cores": 11}, {"usable_cores": 16}, "11 cores are usable here, 16 were"),
]


@pytest.mark.parametrize(("name", "seen", "before", "says"), UNFIT, ids=[one[0] for one in UNFIT])
@pytest.mark.parametrize("tok_s", [1000.0, 800.0])
def test_unfit_is_said_with_what_to_fix_whatever_the_rate(
    name: str, seen: dict[str, Any], before: dict[str, Any], says: str, tok_s: float
) -> None:
    verdict = judge([run(tok_s, **seen)], known(**before), budget(), max_sessions=3)
    assert verdict.outcome is Outcome.UNFIT, name
    assert says in verdict.sentences[0]
    assert not verdict.wants_more
    assert verdict.outcome.blames_machine


FIT: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("nothing known", {}, {}),
    ("busy host", {"load": 400.0, "others_busy_share": 0.99, "steal_share": 0.3}, {}),
    ("waits for cores", {"core_wait_share": 0.6}, {"core_wait_share": 0.0}),
    (
        "capped as before",
        {"watch": watched(reasons={"software power cap": 1.0})},
        {"power_capped_share": 0.9},
    ),
    ("capped, nobody knows", {"watch": watched(reasons={"software power cap": 1.0})}, {}),
    ("one sample", {"watch": watched(throttled_share=0.09)}, {}),
    ("few samples", {"watch": watched(throttled_share=1.0, samples=9)}, {}),
    ("another GPU", {"watch": watched(uuid="GPU-1", throttled_share=1.0, foreign=["x (1)"])}, {}),
    ("unknown pid", {"watch": watched(foreign=["a process of another container"])}, {}),
    ("a core less", {"usable_cores": 12}, {"usable_cores": 16}),
]


@pytest.mark.parametrize(("name", "seen", "before"), FIT, ids=[one[0] for one in FIT])
def test_a_normal_busy_host_fails_no_test(
    name: str, seen: dict[str, Any], before: dict[str, Any]
) -> None:
    verdict = judge([run(**seen)], known(**before), budget(), max_sessions=3)
    assert verdict.outcome is Outcome.PASS, (name, verdict.sentences)


def test_a_run_without_conditions_or_gpu_is_fit() -> None:
    assert flaws(session(1000)) == []
    assert flaws(run(devices=("cpu",), launch_blocking=True)) == []


@pytest.mark.parametrize(
    ("waited", "before", "seconds", "outcome"),
    [
        (0.12, 0.0, 5.0, "UNFIT"),
        (0.04, 0.0, 5.0, "REGRESSED"),
        (0.3, 0.28, 5.0, "REGRESSED"),
        (0.12, None, 5.0, "REGRESSED"),
        (None, 0.0, 5.0, "REGRESSED"),
        (0.5, 0.0, 0.9, "REGRESSED"),
    ],
)
def test_waiting_for_a_core_excuses_what_it_can_explain(
    waited: float | None, before: float | None, seconds: float, outcome: str
) -> None:
    runs = [run(900, core_wait_share=waited, seconds=seconds)] * 3
    verdict = judge(runs, known(core_wait_share=before), budget(), max_sessions=3)
    assert verdict.outcome is Outcome(outcome)
    if outcome == "UNFIT":
        assert verdict.sentences[0].startswith("The stepping thread waited for a core 12 %")


def test_waiting_that_explains_too_little_or_is_not_new_excuses_nothing() -> None:
    slower = [run(700, core_wait_share=0.12)] * 3
    found = judge(slower, known(core_wait_share=0.0), budget(), max_sessions=3)
    assert found.outcome is Outcome.REGRESSED
    base = known(core_wait_share=0.0)
    last = msgspec.structs.replace(base.anchor[-1], core_wait_share=0.1)
    base = msgspec.structs.replace(base, anchor=[*base.anchor[:-1], last])
    found = judge([run(900, core_wait_share=0.12)] * 3, base, budget(), max_sessions=3)
    assert found.outcome is Outcome.REGRESSED


def test_stolen_time_counts_as_waiting() -> None:
    runs = [run(900, core_wait_share=0.0, steal_share=0.12)] * 3
    verdict = judge(runs, known(core_wait_share=0.0), budget(), max_sessions=3)
    assert verdict.outcome is Outcome.UNFIT


def test_a_floor_is_not_judged_on_an_unfit_machine_but_a_missing_baseline_is_said_first() -> None:
    traced = run(tracers=["x (sys.settrace)"])
    alone = judge([traced], None, budget(None, 500.0), max_sessions=1)
    assert alone.outcome is Outcome.UNFIT
    missing = judge([traced], Unavailable("none here"), budget(), max_sessions=1)
    assert missing.outcome is Outcome.NO_BASELINE
