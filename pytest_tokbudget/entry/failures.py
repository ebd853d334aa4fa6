"""How a session's end in another process becomes this test's own outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from ..records.launch import WorkerOutcome, WorkerResult
from ..records.run import RunRecord


class VerdictFailed(pytest.fail.Exception):  # type: ignore[name-defined,misc]  # untyped there
    """The verdict, raised as the test's failure; its text is the whole report of the test."""

    def __init__(self, headline: str, text: str, colored: str) -> None:
        super().__init__(text, pytrace=False)
        self.shown = ShownFailure(headline, text, colored)


class SessionFailed(pytest.fail.Exception):  # type: ignore[name-defined,misc]  # untyped there
    """A session ended badly: the body raised, or the process died. Carries the worker's text.

    ``reason`` is what run.json says of it, in a sentence where there is one; ``when`` is the phase
    of the worker's item that failed.
    """

    when = "call"

    def __init__(self, text: str, reason: str = "") -> None:
        super().__init__(text, pytrace=False)
        self.reason = reason or text
        self.shown = ShownFailure(_headline(text), text, text)


@dataclass(frozen=True)
class Crash:
    """What the short summary, JUnit and ``--tb=line`` show: the test's place, and one line."""

    message: str
    path: str = ""
    lineno: int = 0

    def __str__(self) -> str:
        """As pytest writes a place and what happened there."""
        return f"{self.path}:{self.lineno}: {self.message}"


class ShownFailure:
    """A report's ``longrepr``: the whole text in the failures section, one line everywhere else."""

    def __init__(self, headline: str, text: str, colored: str) -> None:
        self.reprcrash = Crash(headline)
        self._text, self._colored = text, colored

    def place(self, path: str, lineno: int | None) -> None:
        """Note the place of the test: a verdict is about all of it; ``lineno`` counts from 0."""
        self.reprcrash = Crash(self.reprcrash.message, path, (lineno or 0) + 1)

    def __str__(self) -> str:
        """The plain text, for JUnit and logs."""
        return self._text

    def toterminal(self, tw: pytest.TerminalReporter) -> None:
        """Write the text to pytest's terminal writer, coloured where that is wanted."""
        for line in (self._colored if tw.hasmarkup else self._text).splitlines():
            tw.line(line)


def _headline(text: str) -> str:
    """The line that says what happened: pytest's first ``E``, else the first one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line[1:].strip() for line in lines if line.startswith("E  ")]
    return (errors or lines or [""])[0]


def run_of(outcome: WorkerOutcome, item: pytest.Item) -> RunRecord:
    """The session's run record; otherwise raise what the session ended with."""
    result = outcome.result
    if result is None:
        raise SessionFailed(outcome.failure)
    if result.status == "skipped":
        # As pytest's own skipif: the place shown is the test's, not this line.
        raise pytest.skip.Exception(result.reason, _use_item_location=True)
    if result.status == "xfailed":
        pytest.xfail(result.reason)
    if result.status == "failed" and result.when == "teardown" and result.run is not None:
        # As without workers: the test passed, and its teardown is an error of its own.
        item.stash.setdefault(TEARDOWN_KEY, _failure(result, item))
    elif result.status != "passed":
        raise _failure(result, item)
    if result.run is None:
        raise SessionFailed(
            f"{item.nodeid} requested the tokbudget fixture and measured nothing: call "
            "tokbudget(step), or tokbudget.watch(pipeline), once in the test"
        )
    return result.run


def what_ended_evidence(outcome: WorkerOutcome) -> str:
    """In a line, what ended a session in its evidence pass; ``""`` if nothing did."""
    result = outcome.result
    if outcome.came_to != "evidence pass" or (result is not None and result.run is not None):
        return ""
    return _headline(outcome.failure if result is None else result.reason or result.longrepr)


TEARDOWN_KEY = pytest.StashKey[SessionFailed]()
"""What the first failing teardown in a worker ended with; the item's own teardown raises it."""


def _failure(result: WorkerResult, item: pytest.Item) -> SessionFailed:
    text = result.longrepr or result.reason
    if result.when != "call":
        text = f"{result.when} failed in the measuring process\n{text}"
    expected = _expected_exception(item, result.exception_mro)
    bases = (SessionFailed,) if expected is None else (SessionFailed, expected)
    error: SessionFailed = type("SessionFailed", bases, {})(text, result.reason)
    error.when = result.when
    return error


def _expected_exception(
    item: pytest.Item, exception_mro: Sequence[str]
) -> type[BaseException] | None:
    """The class of ``xfail(raises=…)`` that the worker's exception is an instance of."""
    for mark in item.iter_markers("xfail"):
        raises = mark.kwargs.get("raises") or ()
        for kind in raises if isinstance(raises, tuple) else (raises,):
            if f"{kind.__module__}.{kind.__qualname__}" in exception_mro:
                return kind  # type: ignore[no-any-return]  # the mark's value is Any
    return None
