"""Judges one item against a git ref by pairs of fresh workers (``--tokbudget-against``)."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import msgspec
import pytest

from ..analysis.pairs import MOST_PAIRS
from ..errors import LaunchError, MeasureError
from ..records.launch import CapturedSection, WorkerOutcome
from ..records.run import RunRecord
from ..records.verdict import Verdict
from .failures import SessionFailed, run_of, what_ended_evidence
from .settings import Settings
from .wiring.pairs import Pair, PairOutcome, Pairs, judge_pairs
from .wiring.services import Services

if TYPE_CHECKING:
    from .gate import Reached

_SHOWN_FILES = 5


class Against:
    """Pairs, looks and the verdict, one item at a time."""

    def __init__(self, settings: Settings, services: Services) -> None:
        """Find the ref. Raises UsageError."""
        self._settings, self._services = settings, services
        self._pairs = Pairs(settings, services)

    def run(self, item: pytest.Item, into: Reached, *, counts: bool) -> Verdict:
        """Measure pairs of ``item`` until they decide, or the time is up; judge them.

        ``counts``: the marker has counters gate, so both sides count, also at a ref that did not.
        """
        self._pairs.counts = counts
        with ExitStack() as stack:
            try:
                return _Case(self._settings, self._services, self._pairs, item, into).run(stack)
            except (LaunchError, MeasureError) as error:
                raise SessionFailed(f"{item.nodeid}: {error}") from None


class _Case:
    """One item's A/B."""

    def __init__(
        self,
        settings: Settings,
        services: Services,
        pairs: Pairs,
        item: pytest.Item,
        into: Reached,
    ) -> None:
        self._settings, self._services, self._launch = settings, services, pairs
        self._item, self._into = item, into
        self._ref = str(pairs.ref)
        self._pairs: list[Pair] = []
        self._unheld = ""
        self._heads_test = False
        self._began_s = time.monotonic()
        self._longest_s = 0.0

    def run(self, stack: ExitStack) -> Verdict:
        """Look after every pair."""
        if not self._launch.at_ref(self._item.path).exists():
            self._use_heads_test(stack)
        while True:
            outcome = self._measured()
            missing = outcome.ref.result is not None and outcome.ref.result.not_found
            if missing and not self._heads_test:
                self._use_heads_test(stack)
                continue
            self._pairs.append(self._pair(outcome))
            verdict = self._judged()
            self._into.verdict = verdict
            if not verdict.wants_more:
                return self._explained(verdict)

    def _explained(self, verdict: Verdict) -> Verdict:
        """With evidence wanted, one whole session more of either side, which count for nothing."""
        into, wanted = self._into, self._settings.evidence
        if wanted == "never" or (wanted == "on-fail" and verdict.outcome.passes):
            return verdict
        number = len(self._pairs)
        try:
            outcome = self._launch.one_after_the_other(
                self._item.nodeid, number, number + 1, evidence=True
            )
            head, ref = self._explaining(outcome.head, "HEAD"), self._explaining(outcome.ref, "REF")
        except (LaunchError, MeasureError) as error:
            note = f"There is no evidence of both sides: {error}."
            return msgspec.structs.replace(verdict, sentences=[*verdict.sentences, note])
        into.runs.append(head)
        into.reference = ref.evidence
        return verdict

    def _explaining(self, outcome: WorkerOutcome, side: str) -> RunRecord:
        """The run record of an explaining session. Raises MeasureError without one."""
        result = outcome.result
        if result is None or result.run is None or result.status != "passed":
            self._into.lost_evidence = self._into.lost_evidence or what_ended_evidence(outcome)
            why = outcome.failure if result is None else result.reason
            raise MeasureError(f"a session of {side} after the verdict failed ({why})")
        self._services.report.write_run_record(result.run)
        return result.run

    def _use_heads_test(self, stack: ExitStack) -> None:
        """Let the ref's checkout hold HEAD's test file, and the conftests it is written for."""
        root, file = self._settings.rootdir, self._item.path
        above = [one / "conftest.py" for one in file.parents if one.is_relative_to(root)]
        files = [file, *(one for one in above if one.exists())]
        stack.enter_context(self._launch.with_files(files))
        self._heads_test = True

    def _measured(self) -> PairOutcome:
        """One more pair: in turn where that can be, else one session after the other."""
        began_s, nodeid, index = time.monotonic(), self._item.nodeid, len(self._pairs)
        outcome = None
        if not self._unheld:
            outcome = self._launch.in_turn(nodeid, index, MOST_PAIRS)
            self._unheld = outcome.unheld
        if outcome is None or outcome.unheld:
            outcome = self._launch.one_after_the_other(nodeid, index, MOST_PAIRS)
        self._longest_s = max(self._longest_s, time.monotonic() - began_s)
        return outcome

    def _pair(self, outcome: PairOutcome) -> Pair:
        """The two run records; raises what a side ended with instead, the culprit's first."""
        self._keep_sections(outcome.head, "this tree")
        self._keep_sections(outcome.ref, self._ref)
        if outcome.culprit == "head":
            run_of(outcome.head, self._item)
        ref = self._run_at_ref(outcome.ref)
        head = run_of(outcome.head, self._item)
        self._into.runs.append(head)
        self._services.report.write_run_record(head)
        return Pair(ref=ref, head=head)

    def _run_at_ref(self, outcome: WorkerOutcome) -> RunRecord:
        """The ref's run record. A skip or expected failure there is no outcome of this test."""
        result = outcome.result
        if result is not None and result.status == "passed" and result.run is not None:
            return result.run
        if result is None:
            text = outcome.failure
        elif result.status in ("skipped", "xfailed"):
            text = f"the test was {result.status} there: {result.reason}"
        else:
            text = result.longrepr or result.reason or "the test measured nothing there"
        raise SessionFailed(f"there is nothing to compare with at {self._ref}: {text}")

    def _keep_sections(self, outcome: WorkerOutcome, side: str) -> None:
        if outcome.result is not None:
            title = f"(pair {len(self._pairs) + 1}, {side})"
            self._into.sections += [
                CapturedSection(title=f"{one.title} {title}", text=one.text)
                for one in outcome.result.sections
            ]

    def _judged(self) -> Verdict:
        head = self._pairs[-1].head
        if head.budget.tolerance is None:
            raise MeasureError(
                "the call says tolerance=None, so nothing compares it with another commit: judge "
                "its floor without --tokbudget-against"
            )
        spent_s = time.monotonic() - self._began_s
        in_time = spent_s + self._longest_s <= self._settings.max_time_s
        verdict = judge_pairs(self._pairs, head.budget, against=self._ref, may_measure=in_time)
        return msgspec.structs.replace(verdict, sentences=[*verdict.sentences, *self._notes(head)])

    def _notes(self, head: RunRecord) -> list[str]:
        """What a reader must know of how it was measured."""
        notes = []
        if self._heads_test:
            notes.append(
                f"This test does not exist at {self._ref}: HEAD's test measured that code."
            )
        if self._unheld:
            notes.append(f"Whole sessions alternated, not steps: {self._unheld}.")
        dirty = head.machine.commit.dirty_paths
        if dirty:
            shown = ", ".join(dirty[:_SHOWN_FILES]) + (" …" if len(dirty) > _SHOWN_FILES else "")
            notes.append(f"Uncommitted changes are part of what was measured: {shown}.")
        submodules = self._launch.ref.submodules
        if submodules:
            notes.append(f"Submodules are empty in the ref's checkout: {', '.join(submodules)}.")
        return notes
