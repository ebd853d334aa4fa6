"""``--tokbudget-inprocess``: the body runs here, is shown, never stored nor compared."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from ..records.result import TestResult
from ..records.run import RunRecord
from ..records.verdict import Outcome
from .fixture import AddEvidence, Deliver, fail_if_refused
from .proxy import is_measured
from .settings import Settings
from .wiring.services import Services

REASON = "measured in the pytest process (--tokbudget-inprocess): shown, never stored nor compared"


class InProcess:
    """Registered instead of the controller."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self._services = Services(config, settings)
        self._results: dict[str, TestResult] = {}

    def deliver_of(self, item: pytest.Item) -> Deliver:
        """What the fixture of ``item`` hands its run record to."""

        def deliver(run: RunRecord, _with_evidence: AddEvidence | None = None) -> None:
            self._results[item.nodeid] = self._services.failed_result(
                item.nodeid, Outcome.NOT_JUDGED.value, REASON, [run]
            )

        return deliver

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Nothing measured is a failure here too."""
        if exitstatus == pytest.ExitCode.OK and not self._results:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
        if self._results:
            self._services.write_run_json(list(self._results.values()))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """A test that requested the fixture and measured nothing fails."""
        result = yield
        if is_measured(item) and item.nodeid not in self._results:
            pytest.fail(
                f"{item.nodeid} requested the tokbudget fixture and measured nothing", pytrace=False
            )
        fail_if_refused(item)
        return result

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show each measurement."""
        if self._results:
            terminalreporter.section("tokbudget")
            for line in self._services.summary(list(self._results.values()), set()):
                terminalreporter.write_line(line)
