"""How much faster the host runs without the tracer: the one number a replay cannot read off.

The prior comes from a canary, a launch-bound stretch of which both the traced and the untraced time
are known: it gives what the tracer costs per record. The host's speed of the moment comes from the
median duration of a plain launch call, against the canary's. Where the step depends on the host at
all, the timing pass itself then settles the speed, within bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

from scipy.optimize import brentq

from .replay import replay
from .replay_plan import HostModel, make_plan
from .replay_program import Program

LEAST_ELASTICITY = 0.25
"""Below this share of a change of host speed that reaches the step, nothing is solved for."""

SPEED_BOUNDS = (0.75, 1.33)
"""How far the solved speed may be from the prior's."""

_NUDGE = 1.05

TYPICAL_RECORD_COST_NS = {False: 7_000.0, True: 3_400.0}
"""Cost of a record on the hosts measured, without and with operators traced: for want of a canary.
(H200 hosts; launch-bound steps of 12 ms took 16.5 and 25.7 ms under the tracer.)"""


@dataclass(frozen=True, slots=True)
class Canary:
    """A launch-bound stretch, traced as the evidence pass is. ``untraced_step_ms`` is the same
    stretch without the tracer, in the same process."""

    program: Program
    untraced_step_ms: float


@dataclass(frozen=True, slots=True)
class HostFit:
    """``model`` prices the host; ``elasticity`` is the relative change of the step for a relative
    change of speed; ``solved`` says that the timing pass settled the speed, so that what the replay
    then leaves unexplained proves nothing; ``source`` says where the prior comes from."""

    model: HostModel
    elasticity: float
    solved: bool
    source: str


def step_ms(program: Program, model: HostModel, gil_share: float = 1.0) -> float:
    """The replayed step, in ms."""
    return replay(make_plan(program, model, gil_share)).wall_ns / program.steps / 1e6


def record_cost_ns(canary: Canary) -> float | None:
    """What the tracer costs per record: the cost at which the replayed canary takes as long as the
    untraced one. ``None`` where the canary cannot tell, because its step hardly depends on its
    host; 0 where tracing made it no slower."""
    program = canary.program

    def excess(cost: float) -> float:
        return step_ms(program, HostModel(record_cost_ns=cost)) - canary.untraced_step_ms

    if elasticity_of(program, HostModel(typical_cost_ns(program))) <= LEAST_ELASTICITY:
        return None
    # Beyond this no event has anything left to take away.
    most = float(program.host.own_ns.max() + program.host.call_ns.max())
    if excess(0.0) <= 0:
        return 0.0
    return None if excess(most) >= 0 else float(brentq(excess, 0.0, most, xtol=0.1))


def typical_cost_ns(program: Program) -> float:
    """What a record typically costs at the density of a trace."""
    return TYPICAL_RECORD_COST_NS[bool((program.host.records > 1).any())]


def elasticity_of(program: Program, model: HostModel, gil_share: float = 1.0) -> float:
    """Relative change of the replayed step for a relative change of the host's speed."""
    now = step_ms(program, model, gil_share)
    slower = step_ms(program, model.with_speed(model.speed * _NUDGE), gil_share)
    return (slower / now - 1) / (_NUDGE - 1) if now > 0 else 0.0


def prior(program: Program, canary: Canary | None) -> tuple[HostModel, str]:
    """The host model before looking at the timing pass, and where it comes from."""
    cost = None if canary is None else record_cost_ns(canary)
    if canary is None or cost is None:
        why = "no canary" if canary is None else "the canary does not depend on its host"
        return HostModel(typical_cost_ns(program)), f"typical cost of a record ({why})"
    low, high = SPEED_BOUNDS
    speed = 1.0
    if program.launch_call_ns > 0 and canary.program.launch_call_ns > 0:
        speed = canary.program.launch_call_ns / program.launch_call_ns
    return HostModel(cost, min(max(speed, low), high)), "traced canary"


def fit_host(
    program: Program,
    canary: Canary | None = None,
    timing_step_ms: float | None = None,
    gil_share: float = 1.0,
) -> HostFit:
    """Find the host model of a program: the prior, and the timing pass where it can tell."""
    model, source = prior(program, canary)
    elasticity = elasticity_of(program, model, gil_share)
    if timing_step_ms is None or elasticity <= LEAST_ELASTICITY:
        return HostFit(model, elasticity, False, source)
    low, high = (model.speed * one for one in SPEED_BOUNDS)

    def excess(speed: float) -> float:
        return step_ms(program, model.with_speed(speed), gil_share) - timing_step_ms

    if excess(low) >= 0 or excess(high) <= 0:
        edge = low if excess(low) >= 0 else high
        return HostFit(model.with_speed(edge), elasticity, False, f"{source}, at its bound")
    speed = float(brentq(excess, low, high, xtol=1e-4))
    return HostFit(model.with_speed(speed), elasticity, True, f"{source}, timing pass")
