"""What a replay runs: a program with a price on every event, and the price model of its host.

A tracer costs time where it records: per record ``record_cost_ns``, of the call and the Python time
before it together. What remains runs ``speed`` times as long as in the trace (a host's own speed
wanders by tens of per cent between two passes). Sleeps and waits for others take as long as they
took.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .replay_lock import served_ns
from .replay_program import DeviceProgram, FloatArray, Program
from .timeline import CodeArray, IntArray

LEAST_SHARE = 0.2
"""No event is corrected to less than this share of what the trace shows."""


@dataclass(frozen=True, slots=True)
class HostModel:
    """How traced host time becomes the time it takes without a tracer.

    ``lane_speed`` overrides ``speed`` for single lanes (a producer whose pace is known from its
    marks in both passes).
    """

    record_cost_ns: float = 0.0
    speed: float = 1.0
    lane_speed: tuple[tuple[int, float], ...] = ()

    def with_speed(self, speed: float) -> HostModel:
        """The same tracer on a host of another speed."""
        return replace(self, speed=speed)


@dataclass(frozen=True, slots=True)
class Plan:
    """Prices in ns: ``own_ns`` on a CPU (of which ``gil_ns`` with the interpreter's lock),
    ``idle_ns`` off it, ``call_ns`` for the call beyond what it waits for."""

    program: Program
    own_ns: FloatArray
    gil_ns: FloatArray
    named_ns: FloatArray
    sleep_ns: FloatArray
    wait_ns: FloatArray
    call_ns: FloatArray
    waits: CodeArray
    item: IntArray
    device: DeviceProgram
    latency_ns: FloatArray
    carried_ns: FloatArray


def make_plan(
    program: Program, model: HostModel, gil_share: float = 1.0, *, traced: bool = False
) -> Plan:
    """Price every event of a program under a host model; ``traced`` leaves the tracer's cost in,
    and the host as fast as it was (the identity check).

    ``gil_share`` is the share of a Python thread's own time in which it holds the interpreter's
    lock; it matters only where several Python threads run. The time that the trace shows them
    waiting for the lock is then taken out, for the replay puts it back in.
    """
    host = program.host
    unit = host.own_ns + host.call_ns
    tracer = unit - np.maximum(unit - model.record_cost_ns * host.records, LEAST_SHARE * unit)
    own_part = np.divide(host.own_ns, unit, out=np.zeros_like(unit), where=unit > 0)
    own = host.own_ns - tracer * own_part
    call = host.call_ns - tracer * (1 - own_part)
    gil = np.zeros_like(own)
    if program.python_lanes > 1 and gil_share > 0:
        wanted = own * gil_share * host.python
        gil = served_ns(program, wanted)
        own = own - wanted + gil
    named = np.minimum(host.named_ns, own)
    if traced:
        speed: FloatArray | float = 1.0
        own, call = own + tracer * own_part, call + tracer * (1 - own_part) + host.stall_ns
    else:
        speed = _speeds(program, model)
    return Plan(
        program=program,
        own_ns=own * speed,
        gil_ns=gil * speed,
        named_ns=named * speed,
        sleep_ns=host.sleep_ns,
        wait_ns=host.wait_ns,
        call_ns=call * speed,
        waits=host.waits,
        item=host.item,
        device=program.device,
        latency_ns=program.latency_ns,
        carried_ns=program.carried_ns,
    )


def _speeds(program: Program, model: HostModel) -> FloatArray:
    speeds = np.full(len(program.host), model.speed)
    for lane, speed in model.lane_speed:
        speeds[program.lane_bounds[lane] : program.lane_bounds[lane + 1]] = speed
    return speeds
