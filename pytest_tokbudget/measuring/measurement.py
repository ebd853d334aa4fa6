"""What measuring hands on: the raw measurement, and what the author of a test sees of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from msgspec import field
from msgspec.structs import replace

from ..analysis.rates import pooled_step_times_ms, step_percentiles
from ..errors import MeasureError, UsageError
from ..ports import Devices
from ..records.base import Record
from ..records.budget import Budget
from ..records.evidence import Evidence
from ..records.marks import GaugeSeries, MarkSeries, QueueSeries, SpanSeries
from ..records.result import FrameResult, StepMs
from ..records.run import CanarySeries, Pass, WarmUp
from .canary import Canaries
from .evidence_pass import EvidenceWindows, evidence_passes
from .recorder import Recorder

NOT_MEASURED = "no evidence pass was run in this session"


class Measurement(Record, frozen=True, kw_only=True):
    """All that a session measured of one workload; the fixture adds identity and machine.

    Fields are those of ``RunRecord``. Times are monotonic ns.
    """

    token_kind: str
    warmup: WarmUp
    passes: list[Pass]
    marks: list[MarkSeries]
    spans: list[SpanSeries] = field(default_factory=list)
    queues: list[QueueSeries] = field(default_factory=list)
    gauges: list[GaugeSeries] = field(default_factory=list)
    canaries: list[CanarySeries] = field(default_factory=list)
    devices: list[str]
    unavailable: dict[str, str] = field(default_factory=dict)

    @property
    def timing(self) -> Pass:
        """The timing pass."""
        return next(one for one in self.passes if one.kind == "timing")


def with_evidence(
    measurement: Measurement, windows: EvidenceWindows, recorder: Recorder, budget: Budget
) -> Measurement:
    """Return ``measurement`` with the evidence passes and all that was recorded in them.

    Where no instrument got a window, the reasons for having no evidence stay.
    """
    passes = evidence_passes(windows.windows, recorder, budget)
    known = {
        name: reason
        for name, reason in measurement.unavailable.items()
        if reason != NOT_MEASURED or not passes
    }
    return replace(
        measurement,
        passes=[*measurement.passes, *passes],
        marks=recorder.mark_series(budget.token_kind, budget.constant_tokens),
        spans=recorder.span_series(),
        queues=recorder.queue_series(),
        gauges=recorder.gauge_series(),
        unavailable={**known, **windows.unavailable},
    )


class Measured:
    """What ``tokbudget(step)`` returns: this session's figures, for an author's own assertions.

    The verdict is not in it, since that needs all sessions.
    """

    def __init__(
        self, measurement: Measurement, evidence: Callable[[], Evidence] | None = None
    ) -> None:
        self.measurement = measurement
        self._evidence = evidence

    @property
    def tok_s(self) -> float:
        """Tokens per second of the timing pass, of the kind the test is judged by."""
        return self.measurement.timing.tok_s

    @property
    def step_ms(self) -> StepMs:
        """``.p50``, ``.p95`` and ``.max`` of the step time in the timing pass, in ms."""
        return step_percentiles(pooled_step_times_ms(self.measurement.marks))

    @property
    def steps(self) -> int:
        """Steps of the timing pass."""
        return self.measurement.timing.steps

    @property
    def tokens(self) -> dict[str, int]:
        """Tokens of the timing pass by kind."""
        return dict(self.measurement.timing.tokens)

    @property
    def warmup_steps(self) -> int:
        """Steps before the timing pass."""
        return self.measurement.warmup.steps

    @property
    def ledger(self) -> dict[str, dict[str, float]]:
        """Device → cause → ms a step, which sum to the step.

        Computed when first asked for. Only sessions with an evidence pass have one; raises
        ``MeasureError``, saying why there is none.
        """
        found = self._found("ledger")
        if not found.ledgers:
            self._refuse("ledger", found)
        return {one.device: dict(one.rows_ms) for one in found.ledgers}

    @property
    def hot_frames(self) -> list[FrameResult]:
        """The frames that cost most, most first; as ``ledger`` otherwise."""
        found = self._found("hot_frames")
        if not found.hot_frames:
            self._refuse("hot_frames", found)
        return list(found.hot_frames)

    def _found(self, name: str) -> Evidence:
        if self._evidence is None:
            self._refuse(name, Evidence())
        return self._evidence()

    def _refuse(self, name: str, found: Evidence) -> NoReturn:
        reasons = {**self.measurement.unavailable, **found.unavailable}
        reason = reasons.get(name, reasons.get("evidence", NOT_MEASURED))
        raise MeasureError(f"{name} was not measured: {reason}")

    def __repr__(self) -> str:
        return f"<measured {self.tok_s:,.0f} tok/s over {self.steps} steps>"


def require_steps(budget: Budget) -> None:
    """Raise ``UsageError`` unless ``budget`` asks for a positive number of steps."""
    if budget.steps <= 0:
        raise UsageError(f"steps={budget.steps} measures nothing; ask for at least 1 step")
    if budget.warmup_steps is not None and budget.warmup_steps < 0:
        raise UsageError(f"warmup={budget.warmup_steps} is below 0; leave it out to find it")


def used_devices(recorder: Recorder, devices: Devices) -> list[str]:
    """Return the devices the workers declared and those in use; ``["cpu"]`` when there are none."""
    declared = {stream.device for stream in recorder.streams() if stream.device}
    return sorted(declared | set(devices.used())) or ["cpu"]


def collected(
    recorder: Recorder, budget: Budget, devices: list[str], warmup: WarmUp, timing: Pass
) -> Measurement:
    """Return the measurement of everything that ``recorder`` holds."""
    return Measurement(
        token_kind=budget.token_kind,
        warmup=warmup,
        passes=[timing],
        marks=recorder.mark_series(budget.token_kind, budget.constant_tokens),
        spans=recorder.span_series(),
        queues=recorder.queue_series(),
        gauges=recorder.gauge_series(),
        devices=devices,
        unavailable={"ledger": NOT_MEASURED, "hot_frames": NOT_MEASURED},
    )


def with_canaries(measurement: Measurement, canaries: Canaries) -> Measurement:
    """Return ``measurement`` with the readings of ``canaries``."""
    missing = {"canaries": canaries.unavailable} if canaries.unavailable else {}
    return replace(
        measurement,
        canaries=canaries.series(),
        unavailable={**measurement.unavailable, **missing},
    )
