"""The judge's answer."""

from __future__ import annotations

from enum import Enum

from .base import Record


class Outcome(str, Enum):
    """The verdicts of docs/design.md, "Words"."""

    PASS = "PASS"
    IMPROVED = "IMPROVED"
    REGRESSED = "REGRESSED"
    INCONCLUSIVE = "INCONCLUSIVE"
    UNFIT = "UNFIT"
    NO_BASELINE = "NO_BASELINE"
    WORKLOAD_CHANGED = "WORKLOAD_CHANGED"
    RECORDED = "RECORDED"
    NOT_JUDGED = "NOT_JUDGED"

    @property
    def passes(self) -> bool:
        """Whether a test with this verdict is green."""
        return self in (
            Outcome.PASS,
            Outcome.IMPROVED,
            Outcome.RECORDED,
            Outcome.NOT_JUDGED,
        )

    @property
    def blames_machine(self) -> bool:
        """Whether trying again elsewhere or later is the right answer (exit status 75)."""
        return self in (Outcome.INCONCLUSIVE, Outcome.UNFIT)


class SessionFigure(Record, frozen=True, kw_only=True):
    """One session as it was judged. ``set_aside`` says why it was not counted, ``""`` if it was."""

    tok_s: float
    steps: int
    warmup_steps: int
    set_aside: str = ""


class Verdict(Record, frozen=True, kw_only=True):
    """Outcome, the sentences a person reads (most important first), and the numbers behind them.

    Percentages are of tok/s, negative is slower: ``change_pct`` −5.0 means 5 % fewer tokens a
    second than the anchor; ``ci_pct`` is its 99 % interval ``(low, high)``; ``mde_pct`` the
    smallest slow-down (positive) that these sessions would have shown as REGRESSED. ``None`` where
    there is no such number, and then ``sentences`` say why. ``wants_more`` is true when the judge
    asks for another session before it answers; the outcome then is what it would be without one.
    ``changed_counters`` are exact ones of the first session that differ from all of the anchor, or
    from all sessions at the ref of an A/B, (then, now) a step. ``against`` names the git ref of an
    A/B, whose rate ``baseline_tok_s`` is then; it is empty where a stored baseline was judged
    against.
    """

    outcome: Outcome
    sentences: list[str]
    tok_s: float | None = None
    baseline_tok_s: float | None = None
    change_pct: float | None = None
    ci_pct: tuple[float, float] | None = None
    mde_pct: float | None = None
    tolerance_pct: float | None = None
    floor_tok_s: float | None = None
    sessions: list[SessionFigure] = []
    wants_more: bool = False
    changed_counters: dict[str, tuple[float, float]] = {}
    against: str = ""
