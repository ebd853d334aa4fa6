"""What a replay runs: a program with a price on every event, and the price model of its host.

A tracer costs time where it records: per record ``record_cost_ns``, of the call and the Python time
before it together. What remains runs ``speed`` times as long as in the trace (a host's own speed
wanders by tens of per cent between two passes). Sleeps and waits for others take as long as they
took.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

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


AS_TRACED = HostModel()
"""The host as the trace shows it: nothing is corrected (the identity check)."""


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


def make_plan(program: Program, model: HostModel, gil_share: float = 1.0) -> Plan:
    """Price every event of a program under a host model.

    ``gil_share`` is the share of a Python thread's own time in which it holds the interpreter's
    lock; it matters only where several Python threads run, and then the time that the trace shows
    them waiting for each other's lock is taken out first (``held_ns``).
    """
    host = program.host
    own, named = host.own_ns, host.named_ns
    if program.python_lanes > 1 and gil_share > 0:
        own = uncontended_ns(program, gil_share)
        named = np.minimum(named, own)
    unit = own + host.call_ns
    corrected = np.maximum(unit - model.record_cost_ns * host.records, LEAST_SHARE * unit)
    ratio = np.divide(corrected, unit, out=np.ones_like(unit), where=unit > 0)
    ratio *= _speeds(program, model)
    stalls = host.stall_ns if model == AS_TRACED else 0.0
    shared = program.python_lanes > 1
    return Plan(
        program=program,
        own_ns=own * ratio,
        gil_ns=own * ratio * gil_share if shared else np.zeros_like(own),
        named_ns=named * ratio,
        sleep_ns=host.sleep_ns,
        wait_ns=host.wait_ns,
        call_ns=host.call_ns * ratio + stalls,
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


def uncontended_ns(program: Program, gil_share: float) -> FloatArray:
    """Own time less the waiting for the interpreter's lock, from the trace alone.

    A lock that serves in turn is a queue with one server: a stretch that ended at D and began at A
    was served from max(A, D of the stretch served before it) on.
    """
    host = program.host
    spent = host.own_ns + host.sleep_ns + host.wait_ns
    total = spent + host.call_ns + host.stall_ns + host.blocked_ns
    begin = np.empty(len(host))
    for lane in range(len(program.lane_bounds) - 1):
        mine = slice(program.lane_bounds[lane], program.lane_bounds[lane + 1])
        begin[mine] = np.cumsum(total[mine]) - total[mine]
    # The lock is asked for when the gap begins and is held for the first ``gil_share`` of it.
    held_until = begin + host.own_ns * gil_share
    asks = np.flatnonzero(host.own_ns > 0)
    order = asks[np.argsort(held_until[asks], kind="stable")]
    done = held_until[order]
    served = done - np.maximum(begin[order], np.concatenate(([-np.inf], done[:-1])))
    result: FloatArray = host.own_ns.copy()
    waited = host.own_ns[order] * gil_share - np.maximum(served, 0.0)
    result[order] = host.own_ns[order] - np.maximum(waited, 0.0)
    return result
