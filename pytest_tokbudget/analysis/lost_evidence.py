"""Why a test has no evidence: no evidence pass was run, or one began and did not end."""

from __future__ import annotations

from msgspec.structs import replace

from ..records.result import TestResult

NO_EVIDENCE = "no evidence pass was run"


def without_evidence(result: TestResult, ended_by: str) -> TestResult:
    """Return ``result`` with what ended its evidence pass as the reason for having none, wherever
    it says that there was no such pass; unchanged for ``""``."""
    if not ended_by:
        return result
    why_ended = ended_by.removeprefix(f"{result.nodeid}: ")
    reason = f"the evidence pass began and did not end: {why_ended}"
    unavailable = {
        name: reason if why.startswith(NO_EVIDENCE) else why
        for name, why in result.unavailable.items()
    }
    return replace(result, unavailable=unavailable)
