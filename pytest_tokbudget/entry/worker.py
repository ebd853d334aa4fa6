"""The pytest plugin object that turns a pytest process into a worker for one item."""

from __future__ import annotations

import difflib
import io
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TextIO, cast

import pytest
from _pytest.config import create_terminal_writer

from ..launching.guard import leave_stacks
from ..launching.progress import ProgressBlock
from ..launching.spec_file import SessionFiles, write_result
from ..records.launch import CapturedSection, WorkerResult, WorkerSpec
from ..records.run import RunRecord
from .fixture import fail_if_refused
from .neutral import file_name, neutralize, only_arguments_for, unregister_unwanted
from .phases import Phase, captured_sections, deciding_phase, phase_of
from .proxy import is_measured

NEAR_NAMES = 5


class WorkerPlugin:
    """Keeps the one item, neutralizes what must not run twice, and collects how the item ended.

    ``spec`` and ``progress`` are for the fixture; ``deliver`` takes what it measured.
    """

    def __init__(
        self,
        spec: WorkerSpec,
        progress: ProgressBlock,
        terminal: TextIO,
        proof: Callable[[], list[str]] = list,
    ) -> None:
        self.spec = spec
        self.progress = progress
        self._proof = proof
        self._terminal = _Terminal(terminal)
        self._run: RunRecord | None = None
        self._with_evidence: Callable[[RunRecord], RunRecord] | None = None
        self._phases: list[Phase] = []
        self._sections: list[CapturedSection] = []
        self._shown: list[CapturedSection] = []
        self._requested = False
        self._trouble: list[str] = []
        self._collected: list[str] | None = None

    def deliver(
        self, run: RunRecord, with_evidence: Callable[[RunRecord], RunRecord] | None = None
    ) -> None:
        """Take the session's run record; it leaves with the result.

        ``with_evidence`` adds what the instruments saw, once the workload has ended.
        """
        self._run, self._with_evidence = run, with_evidence

    # -- being a pytest for one item --------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(
        self, early_config: pytest.Config
    ) -> Generator[None, None, None]:
        """Coverage would start here, from options parsed early."""
        neutralize(early_config.known_args_namespace)
        yield

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_cmdline_parse(self) -> Generator[None, pytest.Config, pytest.Config]:
        """The innermost wrapper: nobody has seen the parsed options before."""
        config = yield
        config.stash[WORKER_KEY] = self
        neutralize(config.option)
        if self.spec.randomly_seed is not None and hasattr(config.option, "randomly_seed"):
            config.option.randomly_seed = self.spec.randomly_seed
        files = SessionFiles.of(self.spec)
        parent = Path(self.spec.basetemp) if self.spec.basetemp else files.basetemp
        parent.mkdir(parents=True, exist_ok=True)
        # pytest empties this directory first, so it is a new one inside the one that was named.
        config.option.basetemp = tempfile.mkdtemp(prefix="session", dir=parent)
        only_arguments_for(self.spec.nodeid, config)
        return config

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Send the reporter's lines elsewhere: the controller has its own."""
        unregister_unwanted(config)
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            writer = create_terminal_writer(config, cast(TextIO, self._terminal))
            writer.hasmarkup = False
            reporter._tw = writer

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """By now pytest has turned the stacks of a fatal signal to stderr; turn them back."""
        leave_stacks(SessionFiles.of(self.spec).stacks)

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> pytest.CollectReport | None:
        """Import no other test file: what it leaves in the process is not the workload's."""
        if isinstance(collector, pytest.File) and collector.path.name != file_name(
            self.spec.nodeid
        ):
            return pytest.CollectReport(collector.nodeid, "passed", None, [])
        return None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """Keep the item, whatever other plugins make of a collection that is not whole."""
        before = list(items)
        result = yield
        self._collected = [item.nodeid for item in before]
        items[:] = [item for item in [*items, *before] if item.nodeid == self.spec.nodeid][:1]
        return result

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_timeout_set_timer(self) -> bool | None:
        """A worker of a pair waits for the other one most of the time."""
        return True if self.spec.blocks else None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported may be the item's own."""
        if report.failed:
            self._trouble.append(f"collecting {report.nodeid} failed\n{report.longreprtext}")

    def pytest_internalerror(self, excrepr: object) -> None:
        """A hook of pytest, or of a plugin, failed."""
        self._trouble.append(f"pytest's own machinery failed\n{excrepr}")

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """``pytest.exit`` and Ctrl-C end the session without a report."""
        self._trouble.append(f"the session was ended by {excinfo.exconly()}\n{excinfo.getrepr()}")

    # -- the item's end ---------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Leave the result as soon as it is known; the session's end may not come."""
        self._requested = is_measured(item)
        result = yield
        self._trouble += self._proof()
        if self._phases:
            write_result(self.spec, self._result())
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Outermost, so that the report is final; the exception in ``call`` is the raw one."""
        report = yield
        phase = phase_of(call, report, item)
        self._phases.append(phase)
        shown = self._terminal.take()
        if phase.status == "failed" and shown:
            # What a plugin said itself, like the stacks of a time-out.
            self._shown.append(CapturedSection(title=f"Terminal {call.when}", text=shown))
        self._sections = [*captured_sections(report), *self._shown]
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Forget the reporter's own lines."""
        self._terminal.forget()

    pytest_runtest_teardown = pytest_runtest_setup

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Forget the reporter's own lines, and let no body hide a second measurement."""
        self._terminal.forget()
        result = yield
        fail_if_refused(item)
        return result

    def finish(self) -> None:
        """Write the final result once pytest has returned.

        A pytest that never came to collect leaves none: the launcher then shows its output.
        """
        if self._phases or self._trouble or self._collected is not None:
            if self._run is not None and self._with_evidence is not None:
                self._run = self._with_evidence(self._run)
            write_result(self.spec, self._result())

    def _result(self) -> WorkerResult:
        if self._trouble or not any(phase.when == "teardown" for phase in self._phases):
            return self._broken_off()
        phase = deciding_phase(self._phases)
        return WorkerResult(
            status=phase.status,
            when=phase.when,
            reason=phase.reason,
            longrepr=phase.longrepr,
            exception_mro=list(phase.exception_mro),
            sections=self._sections,
            duration_s=sum(each.duration_s for each in self._phases),
            requested=self._requested,
            run=self._run,
        )

    def _broken_off(self) -> WorkerResult:
        """The item never ran, or the session broke around it: failed, with all that is known."""
        texts = list(self._trouble)
        missing = not texts and not self._phases and self.spec.nodeid not in (self._collected or ())
        if not self._phases and self.spec.nodeid not in (self._collected or ()):
            texts.insert(0, self._not_found())
        texts += [phase.longrepr for phase in self._phases if phase.longrepr]
        if not texts:
            texts.append("pytest ended in the measuring process before the item had ended")
        return WorkerResult(
            status="failed",
            when="call" if self._phases else "collect",
            reason=texts[0].partition("\n")[0],
            longrepr="\n\n".join(texts),
            sections=self._sections,
            duration_s=sum(each.duration_s for each in self._phases),
            requested=self._requested,
            not_found=missing,
        )

    def _not_found(self) -> str:
        nodeid, collected = self.spec.nodeid, self._collected or []
        near = difflib.get_close_matches(nodeid, collected, NEAR_NAMES)
        others = ", ".join(near) if near else f"none; {len(collected)} others are in that file"
        return (
            f"{nodeid}: not found in the measuring process: the collection is not deterministic "
            "(parameters from a set, the clock, random numbers or object addresses?); give the "
            f"parameters fixed ids. Nearest names: {others}"
        )


WORKER_KEY = pytest.StashKey[WorkerPlugin]()
"""Where ``config.stash`` holds the plugin object in a worker; absent in every other process."""


class _Terminal(io.TextIOBase):
    """The reporter's stream: a file that outlives the process, and what came since last asked."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._recent: list[str] = []

    def write(self, text: str) -> int:
        """Write through, so that a killed process leaves it all."""
        self._recent.append(text)
        self._file.write(text)
        self._file.flush()
        return len(text)

    def forget(self) -> None:
        """Empty the file too: only what comes after this can explain a death in the item."""
        self._recent.clear()
        self._file.seek(0)
        self._file.truncate()

    def take(self) -> str:
        """What was written since the last call."""
        text = "".join(self._recent)
        self._recent.clear()
        return text
