from __future__ import annotations

import pytest

from pytest_tokbudget.analysis.host_factor import (
    TYPICAL_RECORD_COST_NS,
    Canary,
    fit_host,
    record_cost_ns,
    step_ms,
)
from tests.simulated_loops import TRACER_NS, program_of, run

LAUNCH_BOUND_NS, DEVICE_BOUND_NS = 6_000, 60_000


def canary() -> Canary:
    untraced = run("one_thread", "none", LAUNCH_BOUND_NS).step_ns / 1e6
    return Canary(program_of(run("one_thread", "none", LAUNCH_BOUND_NS, TRACER_NS)), untraced)


def test_the_canary_gives_the_tracers_cost() -> None:
    assert record_cost_ns(canary()) == pytest.approx(TRACER_NS, rel=0.02)


def test_a_canary_that_hides_its_host_gives_nothing() -> None:
    program = program_of(run("one_thread", "none", DEVICE_BOUND_NS, TRACER_NS))
    hidden = Canary(program, run("one_thread", "none", DEVICE_BOUND_NS).step_ns / 1e6)
    assert record_cost_ns(hidden) is None
    fit = fit_host(program, hidden)
    assert fit.model.record_cost_ns == TYPICAL_RECORD_COST_NS[False]
    assert "does not depend on its host" in fit.source


def test_without_a_canary_the_typical_cost_is_taken_and_said() -> None:
    fit = fit_host(program_of(run("one_thread", "none", LAUNCH_BOUND_NS, TRACER_NS)))
    assert fit.model.record_cost_ns == TYPICAL_RECORD_COST_NS[False]
    assert "no canary" in fit.source
    assert not fit.solved


def test_the_timing_pass_settles_the_speed_where_the_step_depends_on_the_host() -> None:
    program = program_of(run("one_thread", "python", LAUNCH_BOUND_NS, TRACER_NS))
    target = step_ms(program, fit_host(program, canary()).model.with_speed(1.2))
    fit = fit_host(program, canary(), timing_step_ms=target)
    assert fit.solved
    assert fit.elasticity > 0.9
    assert fit.model.speed == pytest.approx(1.2, rel=0.01)


def test_nothing_is_solved_where_the_device_sets_the_pace() -> None:
    program = program_of(run("one_thread", "none", DEVICE_BOUND_NS, TRACER_NS))
    fit = fit_host(program, canary(), timing_step_ms=5.0)
    assert not fit.solved
    assert fit.elasticity < 0.25
    assert fit.model.speed == pytest.approx(1.0, rel=0.02)


def test_a_speed_beyond_its_bounds_is_no_solution() -> None:
    program = program_of(run("one_thread", "none", LAUNCH_BOUND_NS, TRACER_NS))
    fit = fit_host(program, canary(), timing_step_ms=5.0)
    assert not fit.solved
    assert fit.model.speed == pytest.approx(1.33)
    assert "at its bound" in fit.source
