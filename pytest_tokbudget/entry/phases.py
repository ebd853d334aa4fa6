"""How the item of a worker ended, phase by phase, as pytest would see it without xfail."""

from __future__ import annotations

import unittest
from dataclasses import dataclass

import pytest

from ..records.launch import CapturedSection

SEVERITY = ("passed", "skipped", "xfailed", "failed")
"""Later ones win when phases differ."""


@dataclass(frozen=True)
class Phase:
    """One of setup, call and teardown."""

    when: str
    status: str
    reason: str = ""
    longrepr: str = ""
    exception_mro: tuple[str, ...] = ()
    duration_s: float = 0.0


def phase_of(call: pytest.CallInfo[None], report: pytest.TestReport, item: pytest.Item) -> Phase:
    """Read a phase from the raw exception; ``report`` (already shaped by xfail marks) gives the
    text in the user's ``--tb`` style."""
    error = call.excinfo.value if call.excinfo is not None else None
    if error is None:
        failed = report.outcome == "failed" and not _is_strict_xpass(report)
        status = "failed" if failed else "passed"
        return Phase(
            call.when,
            status,
            reason=report.longreprtext if failed else "",
            longrepr=report.longreprtext if failed else "",
            duration_s=call.duration,
        )
    if isinstance(error, (pytest.skip.Exception, unittest.SkipTest)):
        return Phase(call.when, "skipped", reason=_message(error), duration_s=call.duration)
    if isinstance(error, pytest.xfail.Exception):
        return Phase(call.when, "xfailed", reason=_message(error), duration_s=call.duration)
    assert call.excinfo is not None
    return Phase(
        call.when,
        "failed",
        reason=call.excinfo.exconly(),
        longrepr=report.longreprtext or str(item.repr_failure(call.excinfo)),
        exception_mro=tuple(
            f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__
        ),
        duration_s=call.duration,
    )


def _is_strict_xpass(report: pytest.TestReport) -> bool:
    """``xfail(strict=True)`` turns a pass into a failure; that is for the controller to judge."""
    return isinstance(report.longrepr, str) and report.longrepr.startswith("[XPASS(strict)]")


def _message(error: BaseException) -> str:
    return str(getattr(error, "msg", None) or error)


def deciding_phase(phases: list[Phase]) -> Phase:
    """The first of the most severe phases; its text holds that of later failures too."""
    own = _without_subtests(phases)
    worst = max(own, key=lambda phase: SEVERITY.index(phase.status))
    if worst.status == "passed":
        return next((phase for phase in own if phase.when == "call"), worst)
    if worst.status != "failed":
        return worst
    failed = [phase for phase in own if phase.status == "failed"]
    texts = [worst.longrepr]
    texts += [f"{each.when} failed too\n{each.longrepr}" for each in failed if each is not worst]
    return Phase(
        worst.when,
        "failed",
        reason=worst.reason,
        longrepr="\n\n".join(texts),
        exception_mro=worst.exception_mro,
        duration_s=worst.duration_s,
    )


def _without_subtests(phases: list[Phase]) -> list[Phase]:
    """Subtests report as calls of their own, before the item's; only their failures concern it."""
    last_call = max((i for i, phase in enumerate(phases) if phase.when == "call"), default=0)
    return [
        phase
        for i, phase in enumerate(phases)
        if phase.when != "call" or i == last_call or phase.status == "failed"
    ]


def captured_sections(report: pytest.TestReport) -> list[CapturedSection]:
    """The captured output so far; the report of the teardown holds that of all phases."""
    return [CapturedSection(title=title, text=text) for title, text in report.sections if text]
