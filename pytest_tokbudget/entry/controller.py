"""The controller's plugin: proxies, reports, summary, storing at the end, exit status."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import pytest
from msgspec.structs import replace

from ..analysis.lost_evidence import without_evidence
from ..errors import StoreError, TokbudgetError, UsageError
from ..records.launch import CapturedSection
from ..records.result import TestResult
from ..records.run import RunRecord
from ..records.verdict import Outcome, Verdict
from .budgets import marker_keywords, resolve
from .failures import TEARDOWN_KEY, SessionFailed, VerdictFailed
from .gate import Gate, Reached
from .identity import workload_of_item
from .proxy import FIXTURE, is_measured, make_proxy
from .settings import Settings
from .wiring.services import Services

EXIT_TRY_AGAIN = 75
"""``EX_TEMPFAIL``: every failure is the machine's, not the code's."""


class Controller:
    """Registered once in the process that the user started, when ``--tokbudget`` is on."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self._config = config
        self._settings = settings
        self._services = Services(config, settings)
        self._gate = Gate(settings, self._services)
        self._items: list[pytest.Item] = []
        self._results: dict[str, TestResult] = {}
        self._sections: dict[str, list[CapturedSection]] = {}
        self._blamed_on_machine: set[str] = set()
        self._failed: set[str] = set()
        self._runs: dict[str, list[RunRecord]] = {}
        self._notes: list[str] = []

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_collection_modifyitems(
        self, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """After every other plugin chose and ordered its items, replace the measured ones."""
        result = yield
        try:
            self._items = [item for item in items if is_measured(item)]
            self._check_markers(items)
            for item in self._items:
                make_proxy(item, self._run)
            if self._items and not self._config.getoption("collectonly"):
                self._check_store()
        except (UsageError, StoreError) as error:
            raise pytest.UsageError(str(error)) from None
        return result

    def _check_markers(self, items: Sequence[pytest.Item]) -> None:
        """Raise UsageError for what is wrong with any of them, a line each."""
        wrong = []
        for item in items:
            try:
                self._check_marker(item)
            except UsageError as error:
                wrong.append(str(error))
        if wrong:
            raise UsageError("\n".join(dict.fromkeys(wrong)))

    def _check_marker(self, item: pytest.Item) -> None:
        if is_measured(item):
            demand = resolve(self._settings, marker_keywords(item), item.nodeid)
            workload_of_item(item, demand, self._settings.rootdir)
        elif any(mark.name == FIXTURE for mark in item.own_markers):
            raise UsageError(
                f"{item.nodeid}: marked tokbudget, but the test does not request the tokbudget "
                "fixture, so nothing would be measured"
            )

    def _check_store(self) -> None:
        settings = self._settings
        self._services.report.check_writable()
        if settings.records or settings.append or settings.missing == "record":
            self._services.shelf.store.check_writable()

    def _run(self, item: pytest.Item) -> None:
        """The proxy's body: measure, judge, raise the verdict if it fails."""
        reached = Reached()
        with self._services.uncaptured():
            try:
                verdict = self._verdict(item, reached)
            except BaseException as error:
                self._note_end(item, reached, error)
                raise
            finally:
                self._sections[item.nodeid] = reached.sections
        self._runs[item.nodeid] = reached.runs
        self._settle(item, verdict, reached)

    def _verdict(self, item: pytest.Item, reached: Reached) -> Verdict:
        try:
            return self._gate.run(item, self._items, reached)
        except TokbudgetError as error:
            # What cannot be judged or stored is a failure of this test, in its own words.
            raise SessionFailed(str(error)) from None

    def _settle(self, item: pytest.Item, verdict: Verdict, reached: Reached) -> None:
        result = self._services.result(verdict, reached.runs, reached.reference)
        result = without_evidence(result, reached.lost_evidence)
        self._results[item.nodeid] = result
        item.user_properties.extend(self._services.junit_properties(result))
        if verdict.outcome.passes:
            return
        lenient = self._settings.inconclusive == "warn"
        if verdict.outcome is Outcome.INCONCLUSIVE and lenient:
            return
        if verdict.outcome.blames_machine:
            self._blamed_on_machine.add(item.nodeid)
        raise VerdictFailed(
            f"{result.outcome}: {verdict.sentences[0]}",
            self._services.terminal_text(result, color=False),
            self._services.terminal_text(result, color=True),
        )

    def _note_end(self, item: pytest.Item, reached: Reached, error: BaseException) -> None:
        """Keep what an item that got no verdict leaves for run.json and its report."""
        if isinstance(error, KeyboardInterrupt):
            return
        skipped = isinstance(error, pytest.skip.Exception)
        outcome = "SKIPPED" if skipped else "FAILED"
        reason = error.reason if isinstance(error, SessionFailed) else str(error)
        result = self._services.failed_result(item.nodeid, outcome, reason, reached.runs)
        self._results[item.nodeid] = without_evidence(result, reached.lost_evidence)
        if reached.verdict is not None and not skipped:
            text = self._services.result(reached.verdict, reached.runs)
            reached.sections.append(
                CapturedSection(
                    title="tokbudget verdict so far",
                    text=self._services.terminal_text(text, color=False),
                )
            )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the workers' captured output and the plain data to the test's own report."""
        report = yield
        if call.when == "call":
            for section in self._sections.pop(item.nodeid, ()):
                report.sections.append((section.title, section.text))
        if report.failed:
            self._failed.add(item.nodeid)
            error = call.excinfo.value if call.excinfo else None
            if isinstance(error, VerdictFailed | SessionFailed):
                error.shown.place(*report.location[:2])
                report.longrepr = error.shown  # type: ignore[assignment]  # meets its duck type
            if isinstance(error, SessionFailed) and error.when == "setup":
                report.when = "setup"  # an error, as pytest has it, and no failure
            if item.nodeid not in self._blamed_on_machine:
                self._services.shelf.discard(self._runs.pop(item.nodeid, ()))
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """After the item's own teardown, raise what one in a worker raised."""
        result = yield
        if TEARDOWN_KEY in item.stash:
            error = item.stash[TEARDOWN_KEY]
            del item.stash[TEARDOWN_KEY]
            raise error
        return result

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_timeout_set_timer(self, item: pytest.Item) -> bool | None:
        """A time-out is for one session, inside its worker, not for all of them together."""
        return True if is_measured(item) else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """However this run ends, nobody may take an earlier one's result for its own."""
        if not self._config.getoption("collectonly"):
            self._services.report.forget_run_json()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write what was queued, write run.json, and settle the exit status."""
        self._services.close()
        if self._config.getoption("collectonly"):
            return
        if exitstatus in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR):
            self._notes.append("interrupted: no baseline was written")
        else:
            session.exitstatus = self._store(exitstatus)
        if exitstatus != pytest.ExitCode.USAGE_ERROR:
            session.exitstatus = self._write_run_json(int(session.exitstatus))
        session.exitstatus = self._exit_status(session, int(session.exitstatus))

    def _store(self, exitstatus: int) -> int:
        try:
            written = self._services.shelf.store.flush()
        except TokbudgetError as error:
            reason = f"baselines were not written: {error}"
            self._notes.append(reason)
            self._results = {
                nodeid: replace(one, outcome="FAILED", reason=reason)
                if one.outcome == Outcome.RECORDED.value
                else one
                for nodeid, one in self._results.items()
            }
            return int(pytest.ExitCode.TESTS_FAILED)
        self._notes.extend(f"wrote {self._services.shown(path)}" for path in written)
        return exitstatus

    def _write_run_json(self, exitstatus: int) -> int:
        try:
            path = self._services.write_run_json(list(self._results.values()))
        except TokbudgetError as error:
            self._notes.append(f"results were not written: {error}")
            return exitstatus or int(pytest.ExitCode.TESTS_FAILED)
        self._notes.append(f"results in {self._services.shown(path)}")
        return exitstatus

    def _exit_status(self, session: pytest.Session, exitstatus: int) -> int:
        measured = [one for one in self._results.values() if one.outcome != "SKIPPED"]
        if exitstatus == pytest.ExitCode.OK and not measured:
            self._notes.append("--tokbudget was given and nothing was measured")
            return int(pytest.ExitCode.NO_TESTS_COLLECTED)
        only_machine = self._failed and self._failed <= self._blamed_on_machine
        counted = session.testsfailed == len(self._failed)
        if exitstatus == pytest.ExitCode.TESTS_FAILED and only_machine and counted:
            return EXIT_TRY_AGAIN
        return exitstatus

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """One section for each test that did not already fail with it, then the family."""
        if not self._results and not self._notes:
            return
        terminalreporter.section("tokbudget")
        for line in self._services.summary(list(self._results.values()), self._failed):
            terminalreporter.write_line(line)
        for note in self._notes:
            terminalreporter.write_line(note)
