"""What the controller works with: sessions, store, judge, artifacts, and what a person sees."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from ...analysis.results import failed_result, test_result
from ...evidence.machine import read_machine
from ...judging import judge
from ...launching.launcher import ProcessLauncher
from ...launching.progress import ProgressSnapshot, phase_name
from ...records.base import Unavailable
from ...records.baseline import Baseline
from ...records.budget import Budget
from ...records.evidence import Evidence
from ...records.launch import WorkerOutcome, WorkerSpec
from ...records.machine import MachineRecord
from ...records.result import RunResult, TestResult
from ...records.run import RunRecord
from ...records.verdict import Verdict
from ...reporting import junit, terminal
from ...reporting.progress import make_progress
from ...storing.artifacts import ReportDirectory
from ..settings import Settings
from . import own_paths
from .shelf import Shelf

WORKER_MODULE = "pytest_tokbudget.entry.worker_main"


class Services:
    """Built once by the controller."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self._config = config
        self._settings = settings
        self.report = ReportDirectory(settings.report)
        self._launcher = ProcessLauncher(
            WORKER_MODULE,
            on_progress=self._on_progress,
            on_output=self._on_output if config.getoption("capture") == "no" else None,
        )
        self._progress = make_progress(sys.stdout, is_tty=sys.stdout.isatty())
        self._machine: MachineRecord | None = None
        self.shelf = Shelf(settings, lambda: self.machine, self.report)

    def session(
        self, nodeid: str, index: int, total: int, *, evidence: bool = False
    ) -> WorkerOutcome:
        """Measure one session of ``nodeid`` in a fresh process, with an evidence pass or not."""
        with (
            self.shown_as(nodeid, index, total),
            tempfile.TemporaryDirectory(prefix="tokbudget-") as scratch,
        ):
            spec = self.spec(nodeid, index, Path(scratch))
            return self.measured(msgspec.structs.replace(spec, evidence=evidence))

    def measured(self, spec: WorkerSpec) -> WorkerOutcome:
        """Run the worker of ``spec``."""
        return self._launcher.run(spec)

    def at_the_end(self, clean_up: Callable[[], None]) -> None:
        """Have ``clean_up`` called when pytest ends, however it does."""
        self._config.add_cleanup(clean_up)

    @contextlib.contextmanager
    def shown_as(self, nodeid: str, index: int, total: int) -> Iterator[None]:
        """Show that session ``index`` (from 0) runs."""
        self._progress.session_started(nodeid, index + 1, total)
        try:
            yield
        finally:
            self._progress.session_ended()

    def launcher(self, look: Callable[[], None]) -> ProcessLauncher:
        """A launcher for a thread: what ``look`` raises, a few times a second, ends the worker."""
        return ProcessLauncher(
            WORKER_MODULE,
            on_progress=lambda _snapshot: look(),
            on_output=self._on_output if self._config.getoption("capture") == "no" else None,
        )

    def spec(self, nodeid: str, index: int, scratch: Path) -> WorkerSpec:
        """What a worker needs to measure one session of ``nodeid``."""
        from ...plugin import INITIAL_SYS_PATH

        settings = self._settings
        return WorkerSpec(
            nodeid=nodeid,
            args=[*settings.args, *settings.worker_args],
            argv=list(sys.argv),
            cwd=str(self._config.invocation_params.dir),
            rootdir=str(settings.rootdir),
            sys_path=list(INITIAL_SYS_PATH),
            result_path=str(scratch / "result.json"),
            progress_path=str(scratch / "progress"),
            session_index=index,
            job=settings.job,
            basetemp=str(self._config.getoption("basetemp") or ""),
            randomly_seed=self._randomly_seed(),
        )

    def _randomly_seed(self) -> int | None:
        """The seed that pytest-randomly settled on: parameters drawn from it must not change."""
        seed = self._config.getoption("randomly_seed", None)
        return seed if isinstance(seed, int) else None

    def _on_progress(self, snapshot: ProgressSnapshot) -> None:
        self._progress.update(phase_name(snapshot.phase), snapshot.counting_marks)

    @staticmethod
    def _on_output(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def judge(
        self,
        runs: Sequence[RunRecord],
        baseline: Baseline | Unavailable | None,
        budget: Budget,
        most: int,
    ) -> Verdict:
        """The verdict on the sessions so far."""
        return judge(runs, baseline, budget, max_sessions=most)

    def judge_floor(self, runs: Sequence[RunRecord]) -> Verdict | None:
        """The verdict on floor and ceilings alone, ``None`` without any."""
        budget = runs[-1].budget
        if budget.floor_tok_s is None and not budget.ceilings:
            return None
        alone = msgspec.structs.replace(budget, tolerance=None, counters="show")
        return judge(runs, None, alone, max_sessions=len(runs))

    def result(
        self, verdict: Verdict, runs: Sequence[RunRecord], reference: Evidence | None = None
    ) -> TestResult:
        """A judged test as run.json has it, its evidence beside ``reference`` or its baseline."""
        if verdict.baseline_tok_s is not None and self._settings.against is None:
            baseline = self.shelf.load(runs[0])
            reference = baseline.reference if isinstance(baseline, Baseline) else None
        return test_result(verdict, runs, reference)

    def failed_result(
        self, nodeid: str, outcome: str, reason: str, runs: Sequence[RunRecord] = ()
    ) -> TestResult:
        """A test without a verdict as run.json has it."""
        return failed_result(nodeid, outcome, reason, runs)

    def junit_properties(self, result: TestResult) -> list[tuple[str, object]]:
        """The main figures for pytest's ``user_properties``."""
        return list(junit.properties(result))

    @contextlib.contextmanager
    def uncaptured(self) -> Iterator[None]:
        """Let progress reach the terminal: nothing of the user's runs in this process here."""
        capture = self._config.pluginmanager.getplugin("capturemanager")
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
            if reporter is not None:
                reporter.ensure_newline()
            yield

    def terminal_text(self, result: TestResult, *, color: bool, width: int = 80) -> str:
        """The section of one test."""
        return terminal.render(
            result, self.machine, width=width, color=color, encoding=self._encoding
        )

    @property
    def _encoding(self) -> str:
        return getattr(sys.stdout, "encoding", None) or "utf-8"

    def summary(self, results: Sequence[TestResult], failed: set[str]) -> Iterator[str]:
        """The lines of the terminal summary: a section for each test, or one line for one that has
        already shown it with its failure, and with ``-q``."""
        writer = self._config.get_terminal_writer()
        brief = self._config.get_verbosity() < 0
        width = min(writer.fullwidth, 100)
        for result in results:
            if brief or result.nodeid in failed or result.outcome == "SKIPPED":
                yield terminal.summary_line(result, encoding=self._encoding)
            else:
                yield self.terminal_text(result, color=writer.hasmarkup, width=width)
        family = terminal.family_line(results, encoding=self._encoding)
        if family:
            yield family

    @property
    def machine(self) -> MachineRecord:
        """The machine record, read once."""
        if self._machine is None:
            settings = self._settings
            self._machine = read_machine(
                settings.pool, rootdir=settings.rootdir, exclude=own_paths(settings)
            )
        return self._machine

    def write_run_json(self, results: Sequence[TestResult]) -> Path:
        """Write run.json."""
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        sha = self.machine.commit.sha
        return self.report.write_run_json(
            RunResult(created=created, commit=sha, machine=self.machine, tests=list(results))
        )

    def shown(self, path: Path) -> str:
        """``path`` relative to the rootdir where it lies below it."""
        root = self._settings.rootdir
        return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)

    def close(self) -> None:
        """End the progress display."""
        self._progress.close()
