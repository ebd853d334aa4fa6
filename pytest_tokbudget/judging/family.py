"""What the verdicts of one run are worth together."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_tokbudget.analysis.looks import EARLIER_LOOKS_ALPHA, LAST_LOOK_ALPHA
from pytest_tokbudget.records.verdict import Outcome, Verdict

from .wording import count

_JUDGED = (Outcome.PASS, Outcome.IMPROVED, Outcome.REGRESSED, Outcome.INCONCLUSIVE)


def family(verdicts: Sequence[Verdict]) -> str | None:
    """Return the sentence on all tests judged against a baseline; ``None`` for fewer than two.

    Each test keeps its own level; correcting for their number would only make more of them
    INCONCLUSIVE, so the false alarms to expect are said instead.
    """
    judged = sum(one.outcome in _JUDGED and one.ci_pct is not None for one in verdicts)
    if judged < 2:
        return None
    expected = judged * (LAST_LOOK_ALPHA + EARLIER_LOOKS_ALPHA)
    alarms = f"{expected:.2g} false alarms" if expected >= 0.1 else "under 0.1 false alarms"
    return f"{count(judged, 'test')} judged; {alarms} to expect at most if nothing changed."
