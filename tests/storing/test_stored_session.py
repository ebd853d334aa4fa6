"""What a baseline keeps of the machine a session ran on."""

from __future__ import annotations

import msgspec
import pytest

from pytest_tokbudget.records.conditions import Conditions
from pytest_tokbudget.records.run import CanarySeries
from pytest_tokbudget.records.telemetry import DeviceTelemetry, MachineWatch
from pytest_tokbudget.storing.refresh_log import stored_session

from .builders import run


def test_a_stored_session_keeps_what_its_canaries_and_conditions_said() -> None:
    canaries = [
        CanarySeries(name="host_loop", where="before", times_ns=[1, 2], durations_ns=[10**6, 10**6])
    ]
    device = DeviceTelemetry(
        uuid="GPU-1",
        index=0,
        product="GPU",
        samples=4,
        reasons={"software power cap": 0.75},
        throttled_share=0.0,
    )
    conditions = Conditions(
        seconds=2.0,
        usable_cores=16,
        core_wait_share=0.1,
        watch=MachineWatch(seconds=1.0, samples=4, devices=[device]),
    )
    plain = run()
    stored = stored_session(
        msgspec.structs.replace(plain, canaries=canaries, conditions=conditions), "job"
    )
    assert stored.canaries_ms == {"around/host_loop": 1.0}
    assert (stored.core_wait_share, stored.power_capped_share) == (0.1, 0.75)
    assert stored.usable_cores == plain.machine.usable_cores
    bare = stored_session(plain, "job")
    assert (bare.canaries_ms, bare.core_wait_share, bare.power_capped_share) == ({}, None, None)


@pytest.mark.parametrize(("read", "kept"), [(-0.02, 0.0), (0.1, 0.1), (1.3, 1.0)])
def test_an_account_of_the_kernel_that_ran_backwards_is_no_negative_share(
    read: float, kept: float
) -> None:
    conditions = Conditions(seconds=2.0, usable_cores=16, core_wait_share=read, steal_share=read)
    stored = stored_session(msgspec.structs.replace(run(), conditions=conditions), "job")
    assert (stored.core_wait_share, stored.steal_share) == (kept, kept)
