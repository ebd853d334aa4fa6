"""What a program did in every step, counted exactly."""

from __future__ import annotations

from .base import Record


class TracedCounters(Record, frozen=True, kw_only=True):
    """Counts of one device trace, step by step, as ``analysis.counters`` names them.

    ``instrument`` says what counted; ``unavailable`` why there is no complete trace, ``""`` where
    there is one.
    """

    instrument: str = ""
    by_step: dict[str, list[int]] = {}
    unavailable: str = ""


class ExactCounters(Record, frozen=True, kw_only=True):
    """The counters of one session.

    ``counts`` are those that are the same in every step, or ``(count, steps)`` of a pattern that
    repeats every ``steps`` steps. ``varying`` are ``(least, most)`` a step of those that are not
    exact here; ``(0, 0)`` where they could not be counted by step. ``instrument`` is what traced
    the devices, ``""`` without a trace; ``untraced`` then is why a device that was used was not
    traced, ``""`` where none was used.
    """

    counts: dict[str, int | tuple[int, int]]
    varying: dict[str, tuple[int, int]] = {}
    instrument: str = ""
    untraced: str = ""
