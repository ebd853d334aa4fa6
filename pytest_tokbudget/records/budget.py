"""What the author demands."""

from __future__ import annotations

from .base import Record


class Budget(Record, frozen=True, kw_only=True):
    """Marker, call, ini and options resolved for one test.

    ``tolerance`` is a share (0.03 for "3%"), ``None`` when the author said ``tolerance=None``
    (then a floor is required). ``floor_tok_s`` is in tokens per second. ``warmup_steps`` ``None``
    means: find the steady state. ``constant_tokens`` is the author's ``tokens=``. ``ceilings`` maps
    a figure of ``run.json`` by its name (``"step_ms.p95"``) to the largest value allowed, in the
    figure's own unit. ``counters`` is ``"fail"`` where more of an exact counter than in the
    baseline fails the test, else ``"show"``.
    """

    steps: int
    warmup_steps: int | None = None
    tolerance: float | None = 0.05
    floor_tok_s: float | None = None
    token_kind: str = "real"
    constant_tokens: int | None = None
    sessions: tuple[int, int] = (1, 3)
    ceilings: dict[str, float] = {}
    counters: str = "show"
