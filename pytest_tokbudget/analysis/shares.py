"""Shares for print that sum to 100 %."""

from __future__ import annotations

from collections.abc import Sequence


def printed_shares(parts: Sequence[int], digits: int = 1) -> list[float]:
    """Percentages of ``parts`` (non-negative) rounded so that the printed figures sum to 100.

    Largest remainder (Hamilton's method): every share is rounded down, and what is missing goes to
    those that lost most. All zero when the parts are.
    """
    whole = sum(parts)
    if whole == 0:
        return [0.0] * len(parts)
    units = 100 * 10**digits
    floors = [part * units // whole for part in parts]
    lost = [part * units % whole for part in parts]
    by_loss = sorted(range(len(parts)), key=lambda at: (-lost[at], at))
    for at in by_loss[: units - sum(floors)]:
        floors[at] += 1
    return [floor / 10**digits for floor in floors]
