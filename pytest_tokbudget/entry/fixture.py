"""The object behind the ``tokbudget`` fixture."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from ..errors import UsageError
from ..records.run import RunRecord
from . import wiring
from .budgets import KEYWORDS, Demand, resolve
from .identity import workload_of_item
from .proxy import FIXTURE
from .settings import Settings
from .tracebacks import without_our_frames

if TYPE_CHECKING:
    from ..evidence.conditions import ConditionsReader
    from ..measuring.measurement import Measured, Measurement
    from ..measuring.recorder import Recorder
    from .wiring.evidence import EvidencePass

AddEvidence = Callable[[RunRecord], RunRecord]


class Deliver(Protocol):
    """Takes a session's run record, and what adds its evidence once the workload has ended."""

    def __call__(self, run: RunRecord, with_evidence: AddEvidence | None = None, /) -> None:
        """Keep both."""
        ...


CALL_KEYWORDS = tuple(key for key in KEYWORDS if key != "sessions")


@dataclass
class Context:
    """What the fixture object needs of its surroundings.

    ``deliver`` takes the run record and, where there is evidence, what adds it; ``beat`` is the
    progress block's memory, ``None`` in process; ``blocks`` the control channel of a pair in an
    A/B; ``evidence`` asks for an evidence pass; ``judged`` is true in a session that is held
    against others, or becomes part of a baseline; ``job`` is the invocation it belongs to;
    ``counts`` asks for counters whatever the test says.
    """

    item: pytest.Item
    settings: Settings
    marker: Mapping[str, Any]
    deliver: Deliver
    beat: memoryview | None = None
    blocks: str = ""
    evidence: bool = False
    judged: bool = False
    job: str = ""
    counts: bool = False


class Tokbudget:
    """Measures one workload: call it with a step, or let it watch a pipeline that runs itself.

    ``tokbudget(step, **demands)`` runs ``step`` again and again; ``step`` runs one step and returns
    the tokens it consumed, an int or a dict by kind. ``tokbudget.watch(pipeline, **demands)``
    measures the marks that the workers of a running pipeline make through ``tokbudget.recorder``.
    Demands are the keywords of the marker. One measurement a test: ``refused`` says what was wrong
    with a second one, which a body that swallows the error cannot hide.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._used = False
        self.refused = ""
        self._recorder: Recorder | None = None

    @property
    def recorder(self) -> Recorder:
        """The recorder that a pipeline's workers mark their steps with."""
        if self._recorder is None:
            self._recorder = wiring.recorder(self._context.beat)
        return self._recorder

    def __call__(self, step: Callable[[], object], **demands: Any) -> Measured:
        """Measure ``step``. Raises MeasureError, UsageError, or what the step raises."""
        __tracebackhide__ = True
        try:
            if not callable(step):
                raise UsageError(
                    f"{self._context.item.nodeid}: tokbudget({step!r}): a step must be callable; "
                    "pass the function, not its result"
                )
            return self._measured(partial(wiring.measure_steps, step), demands)
        except BaseException as error:  # noqa: BLE001 - raised again, whatever it is
            raise without_our_frames(error)  # noqa: B904 - it is the error itself

    def watch(self, pipeline: object = None, **demands: Any) -> Measured:
        """Measure a pipeline that runs itself and marks its steps through ``recorder``."""
        __tracebackhide__ = True
        try:
            return self._measured(partial(wiring.watch, pipeline), demands)
        except BaseException as error:  # noqa: BLE001 - raised again, whatever it is
            raise without_our_frames(error)  # noqa: B904 - it is the error itself

    def _measured(
        self, measure: Callable[..., Measurement], demands: Mapping[str, Any]
    ) -> Measured:
        demand = self._begin(demands)
        pacer = wiring.pacer(self._context.blocks)
        evidence = self._evidence_pass(demand)
        with wiring.conditions() as conditions:
            measurement = measure(self.recorder, demand.budget, pacer, evidence)
            return self._finish(demand, measurement, conditions, evidence)

    def _evidence_pass(self, demand: Demand) -> EvidencePass | None:
        """Counters that gate are traced in every session, and without evidence that alone."""
        context = self._context
        gates = context.counts or (demand.budget.counters == "fail" and context.judged)
        if not (context.evidence or gates):
            return None
        return wiring.evidence_pass(
            self.recorder,
            context.settings.rootdir,
            explains=context.evidence,
            counts=gates,
            native=context.settings.native,
        )

    def _begin(self, demands: Mapping[str, Any]) -> Demand:
        nodeid = self._context.item.nodeid
        for key in demands:
            if key not in CALL_KEYWORDS:
                what = "belongs to the marker" if key in KEYWORDS else "unknown keyword"
                raise UsageError(
                    f"{nodeid}: tokbudget(…, {key}=…): {what}; "
                    f"known in a call are {', '.join(CALL_KEYWORDS)}"
                )
        demand = resolve(self._context.settings, {**self._context.marker, **demands}, nodeid)
        if self._used:
            self.refused = (
                f"{nodeid}: a second measurement in one test, in a process that the first has "
                "disturbed: parametrize the test instead"
            )
            raise UsageError(self.refused)
        self._used = True
        return demand

    def _finish(
        self,
        demand: Demand,
        measurement: Measurement,
        conditions: ConditionsReader,
        evidence: EvidencePass | None,
    ) -> Measured:
        """Turn the measurement into the session's run record and hand it over."""
        context = self._context
        offset_ns = time.time_ns() - time.monotonic_ns()
        timing = measurement.timing
        seen = conditions.stop(
            (timing.start_ns + offset_ns, timing.end_ns + offset_ns),
            [one.native_id for one in measurement.marks if one.counts],
        )
        machine = wiring.machine(context.settings)
        run = RunRecord(
            workload=workload_of_item(context.item, demand, context.settings.rootdir),
            budget=demand.budget,
            machine=machine,
            unix_offset_ns=offset_ns,
            pid=os.getpid(),
            job=context.job,
            devices=measurement.devices,
            warmup=measurement.warmup,
            passes=measurement.passes,
            marks=measurement.marks,
            spans=measurement.spans,
            queues=measurement.queues,
            gauges=measurement.gauges,
            canaries=measurement.canaries,
            conditions=seen,
            unavailable=measurement.unavailable,
        )
        if evidence is None:
            context.deliver(run)
            return wiring.measured(measurement)
        found = evidence.once(measurement, offset_ns)
        context.deliver(run, lambda run: evidence.added_to(run, measurement, found))
        return wiring.measured(measurement, found if context.evidence else None)


def fail_if_refused(item: pytest.Item) -> None:
    """Fail a test whose body swallowed the refusal of a second measurement."""
    used = getattr(item, "funcargs", {}).get(FIXTURE)
    if isinstance(used, Tokbudget) and used.refused:
        pytest.fail(used.refused, pytrace=False)
