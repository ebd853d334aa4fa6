"""Measures one item by fresh sessions and judges them: the controller's main job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from ..errors import RefreshRefusedError, TokbudgetError
from ..records.base import Unavailable
from ..records.baseline import Baseline
from ..records.budget import Budget
from ..records.evidence import Evidence
from ..records.launch import CapturedSection, WorkerOutcome
from ..records.run import RunRecord
from ..records.verdict import Outcome, Verdict
from ..records.workload import Workload
from .budgets import marker_keywords, resolve
from .combinations import REFRESH_SESSIONS
from .failures import TEARDOWN_KEY, SessionFailed, run_of, what_ended_evidence
from .identity import workload_of_item
from .settings import Settings
from .wiring.services import Services
from .wiring.unjudged import not_judged

if TYPE_CHECKING:
    from .against import Against

MOST_MEASURED_AGAIN = 2
"""Sessions on a slow host that a refresh measures again before it refuses."""


APPENDED = (Outcome.PASS, Outcome.IMPROVED, Outcome.INCONCLUSIVE)
"""Verdicts whose sessions widen the spread: to leave out the noisy ones would narrow it."""


@dataclass
class Reached:
    """One item as far as it got: its runs, captured output and last verdict.

    A run after those that ``verdict`` rests on was measured to explain it, and counts for nothing.
    ``reference`` is the evidence of what they were held against, where that is no baseline.
    ``lost_evidence`` says what ended an evidence pass that began.
    """

    runs: list[RunRecord] = field(default_factory=list)
    sections: list[CapturedSection] = field(default_factory=list)
    verdict: Verdict | None = None
    reference: Evidence | None = None
    lost_evidence: str = ""


class Gate:
    """Sessions, verdict, and what is queued for the store, one item at a time."""

    def __init__(self, settings: Settings, services: Services) -> None:
        self._settings = settings
        self._services = services
        self._ahead: dict[str, list[WorkerOutcome]] = {}
        self._measured_ahead = False
        self._against: Against | None = None
        if settings.against is not None:
            from .against import Against

            self._against = Against(settings, services)

    def run(self, item: pytest.Item, siblings: Sequence[pytest.Item], into: Reached) -> Verdict:
        """Measure and judge ``item``; ``into`` keeps what was reached if this raises.

        ``siblings`` are all measured items here: a refresh interleaves their sessions.
        """
        budget = resolve(self._settings, marker_keywords(item), item.nodeid).budget
        if self._against is not None and budget.tolerance is not None:
            return self._against.run(item, into, counts=budget.counters == "fail")
        refresh, measure = self._settings.refresh, self._settings.measure
        if refresh is not None:
            self._check_refresh(item)
        if (refresh is not None or measure is not None) and not self._measured_ahead:
            self._measure_ahead(siblings)
        if measure is not None:
            return self._measure(item, into)
        if refresh is not None:
            return self._record(item, into, refresh)
        return self._judge(item, budget, into)

    def _next_run(self, item: pytest.Item, into: Reached, total: int) -> RunRecord:
        """One more session; raises what it ended with if it has no measurement."""
        index = len(into.runs)
        ahead = self._ahead.get(item.nodeid)
        evidence = index == 0 and self._first_has_evidence
        outcome = (
            ahead.pop(0)
            if ahead
            else self._services.session(item.nodeid, index, total, evidence=evidence)
        )
        self._keep(into, outcome)
        return run_of(outcome, item)

    def _keep(self, into: Reached, outcome: WorkerOutcome) -> None:
        """Keep what a session left, however it ended."""
        index = len(into.runs)
        result = outcome.result
        into.lost_evidence = into.lost_evidence or what_ended_evidence(outcome)
        if result is not None:
            into.sections += [
                CapturedSection(title=f"{one.title} (session {index + 1})", text=one.text)
                for one in result.sections
            ]
            if result.run is not None:
                into.runs.append(result.run)
                self._services.report.write_run_record(result.run)

    def _judge(self, item: pytest.Item, budget: Budget, into: Reached) -> Verdict:
        least, most = budget.sessions
        if budget.tolerance is not None:
            # One that cannot be read is told before anything is measured.
            self._services.shelf.expected(self._workload(item))
        baseline: Baseline | Unavailable | None = None
        while True:
            run = self._next_run(item, into, most)
            if len(into.runs) == 1 and run.budget.tolerance is not None:
                baseline = self._services.shelf.load(run)
                if isinstance(baseline, Unavailable) and self._settings.missing == "record":
                    return self._record(item, into, "recorded: no baseline before")
            into.verdict = self._services.judge(into.runs, baseline, run.budget, most)
            settled = into.verdict.outcome in (Outcome.NO_BASELINE, Outcome.WORKLOAD_CHANGED)
            decided = len(into.runs) >= least and not into.verdict.wants_more
            if settled or decided or len(into.runs) >= most:
                judged = tuple(into.runs)
                self._explain(item, into, into.verdict)
                return self._concluded(item, into.verdict, judged)

    @property
    def _first_has_evidence(self) -> bool:
        """One session of a test is enough; a baseline is nothing to compare with without it."""
        wanted = self._settings.evidence
        return wanted == "always" or (wanted == "on-fail" and self._settings.refresh is not None)

    def _explain(self, item: pytest.Item, into: Reached, verdict: Verdict) -> None:
        """With ``on-fail``, one more session after a failing verdict, which counts for nothing."""
        if self._settings.evidence == "on-fail" and not verdict.outcome.passes:
            index = len(into.runs)
            outcome = self._services.session(item.nodeid, index, index + 1, evidence=True)
            self._keep(into, outcome)

    def _concluded(self, item: pytest.Item, verdict: Verdict, runs: Sequence[RunRecord]) -> Verdict:
        """Skip, leave a candidate, or append, as verdict and options say."""
        if verdict.outcome is Outcome.NO_BASELINE:
            if self._settings.missing == "skip":
                pytest.skip(verdict.sentences[0])
            self._services.shelf.leave_candidate(runs)
        if self._settings.append and verdict.outcome in APPENDED and TEARDOWN_KEY not in item.stash:
            try:
                self._services.shelf.append(runs)
            except RefreshRefusedError as error:
                if verdict.outcome.passes:
                    raise SessionFailed(f"the sessions were not appended: {error}") from None
        return verdict

    def _measure_ahead(self, items: Sequence[pytest.Item]) -> None:
        """Measure the sessions of all items round-robin: tests then share the host's moods."""
        self._measured_ahead = True
        rotation = [one for one in items if self._settings.refresh is None or self._may_store(one)]
        for index in range(self._wanted):
            for item in tuple(rotation):
                outcome = self._services.session(
                    item.nodeid,
                    index,
                    self._wanted,
                    evidence=index == 0 and self._first_has_evidence,
                )
                self._ahead.setdefault(item.nodeid, []).append(outcome)
                result = outcome.result
                if result is None or result.status != "passed" or result.run is None:
                    rotation.remove(item)

    @property
    def _wanted(self) -> int:
        """Sessions of an anchor, or as many as are to be measured."""
        if self._settings.measure is not None:
            return self._settings.measure
        if self._settings.sessions_from_option and self._settings.sessions is not None:
            return self._settings.sessions[0]
        return REFRESH_SESSIONS

    def _workload(self, item: pytest.Item) -> Workload:
        demand = resolve(self._settings, marker_keywords(item), item.nodeid)
        return workload_of_item(item, demand, self._settings.rootdir)

    def _check_refresh(self, item: pytest.Item) -> None:
        try:
            self._services.shelf.check_refresh(self._workload(item))
        except RefreshRefusedError as error:
            raise SessionFailed(f"the baseline was not stored: {error}") from None

    def _may_store(self, item: pytest.Item) -> bool:
        """Whether a refresh of ``item`` may begin; if not, its own turn says why."""
        try:
            self._check_refresh(item)
        except (TokbudgetError, SessionFailed):
            return False
        return True

    def _measure(self, item: pytest.Item, into: Reached) -> Verdict:
        """Measure for the sessions' own sake."""
        while len(into.runs) < self._wanted:
            self._next_run(item, into, self._wanted)
        return not_judged(into.runs)

    def _record(self, item: pytest.Item, into: Reached, reason: str) -> Verdict:
        """Measure until a clean anchor stands, queue it, and say so."""
        while len(into.runs) < self._wanted:
            self._next_run(item, into, self._wanted)
        if TEARDOWN_KEY in item.stash:
            raise SessionFailed("the baseline was not stored: the teardown of a session failed")
        verdict = self._services.judge_floor(into.runs)
        if verdict is not None and not verdict.outcome.passes:
            return verdict
        try:
            for _ in range(MOST_MEASURED_AGAIN):
                missing = self._services.shelf.propose(
                    into.runs, reason, self._wanted
                ).replacements_needed
                for _ in range(missing):
                    self._next_run(item, into, len(into.runs) + 1)
            return self._services.shelf.replace_anchor(into.runs, reason, self._wanted)
        except RefreshRefusedError as error:
            raise SessionFailed(f"the baseline was not stored: {error}") from None
