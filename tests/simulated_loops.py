"""Training loops for the simulator: one thread, a producer and a consumer, two streams."""

from __future__ import annotations

from functools import cache

from pytest_tokbudget.analysis.replay_decode import decode
from pytest_tokbudget.analysis.replay_plan import HostModel
from pytest_tokbudget.analysis.replay_program import Program
from pytest_tokbudget.analysis.simulate_program import Machine, Op, OpKind
from pytest_tokbudget.analysis.simulate_trace import Simulated, simulate
from pytest_tokbudget.analysis.whatif import WhatIf, what_if

STEPS = 12
KERNELS = 40
DISPATCH_NS = 9_000
CALL_NS = 4_000
TRACER_NS = 6_000
FAULT_NS = 3_000_000


def forward_backward(
    kernel_ns: int, stream: int = 0, after_forward: list[Op] | None = None
) -> list[Op]:
    """One step's launches; the second half stands for the backward pass of another thread."""
    ops: list[Op] = []
    for at in range(KERNELS):
        native = at >= KERNELS // 2
        if at == KERNELS // 2:
            ops += after_forward or []
        ops.append(Op(OpKind.PYTHON, DISPATCH_NS, native=native))
        ops.append(Op(OpKind.LAUNCH, CALL_NS, kernel_ns, stream, native=native))
    return ops


def one_thread(fault: str, kernel_ns: int) -> list[list[Op]]:
    """A loop of one training thread with one fault (``"none"``: without)."""
    before = {
        "python": [Op(OpKind.PYTHON, FAULT_NS, name="collate")],
        "sleep": [Op(OpKind.SLEEP, FAULT_NS)],
    }
    middle = {"item": [Op(OpKind.SYNC_STREAM, 5_000)]}
    after = {
        "cache": [Op(OpKind.MALLOC, 60_000), Op(OpKind.FREE, 40_000)] * 6,
        "copy": [Op(OpKind.COPY_OUT, 20_000, 2_000_000)],
    }
    step = [
        *before.get(fault, []),
        *forward_backward(kernel_ns, 0, middle.get(fault)),
        *after.get(fault, []),
    ]
    return [step * STEPS + [Op(OpKind.SYNC_DEVICE, 2_000)]]


def pipeline(fault: str, kernel_ns: int) -> list[list[Op]]:
    """A consumer (which counts) and a producer on another device, with a queue between them."""
    slow = {
        "python": [Op(OpKind.PYTHON, FAULT_NS, name="collate")],
        "sleep": [Op(OpKind.SLEEP, FAULT_NS)],
    }.get(fault, [])
    producer = [*slow, *forward_backward(8_000), Op(OpKind.SYNC_STREAM, 5_000), Op(OpKind.PUT)]
    consumer = [Op(OpKind.GET), *forward_backward(kernel_ns, 1)]
    return [consumer * STEPS + [Op(OpKind.SYNC_DEVICE, 2_000, stream=1)], producer * STEPS]


def starved(fault: str, kernel_ns: int) -> list[list[Op]]:
    """A training thread fed by a loader that touches no device."""
    period = 2_000_000 if fault == "queue" else 1_000
    loader = [Op(OpKind.SLEEP, period), Op(OpKind.PYTHON, 50_000), Op(OpKind.PUT)]
    trainer = [Op(OpKind.GET), *forward_backward(kernel_ns)]
    return [trainer * STEPS + [Op(OpKind.SYNC_DEVICE, 2_000)], loader * STEPS]


def two_streams(fault: str, kernel_ns: int) -> list[list[Op]]:
    """A long kernel on a side stream (of another device), which the main stream may wait for."""
    wait = [Op(OpKind.STREAM_WAIT, 2_000, stream=0, other=1)] if fault == "stream" else []
    side = [Op(OpKind.PYTHON, DISPATCH_NS), Op(OpKind.LAUNCH, CALL_NS, 1_200_000, 1)]
    step = [*side, *forward_backward(kernel_ns, 0, wait)]
    return [step * STEPS + [Op(OpKind.SYNC_DEVICE, 2_000)]]


LOOPS = {
    "one_thread": (one_thread, (0,), ()),
    "pipeline": (pipeline, (0, 1), (3,)),
    "starved": (starved, (0,), (3,)),
    "two_streams": (two_streams, (0, 1), ()),
}


@cache
def run(loop: str, fault: str, kernel_ns: int, tracer_ns: int = 0) -> Simulated:
    """Simulate a loop with or without a tracer."""
    build, devices, capacity = LOOPS[loop]
    machine = Machine(stream_device=devices, capacity=capacity, tracer_ns=tracer_ns)
    return simulate(machine, build(fault, kernel_ns), STEPS)


def program_of(simulated: Simulated) -> Program:
    """The program its trace tells of."""
    return decode(simulated.timeline, simulated.labels, simulated.queues, 0).program


def priced(simulated: Simulated, tracer_ns: int) -> WhatIf:
    """What each cause costs, the tracer's cost known."""
    return what_if(program_of(simulated), HostModel(record_cost_ns=tracer_ns))
