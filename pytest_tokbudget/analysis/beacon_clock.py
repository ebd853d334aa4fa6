"""A sampler's clock from its view of a beacon thread, and the stretches in which it saw nothing.

The beacon alternates between two states and logs when. The sampler's times are off by one unknown
constant. At the right one, every look at the beacon agrees with its log; the range of offsets at
which as many agree is the uncertainty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
COARSE_NS = 1_000_000
FINE_NS = 20_000
LEAST_LOOKS = 8
LEAST_AGREEING = 0.8


@dataclass(frozen=True, slots=True)
class SolvedClock:
    """Add ``offset_ns`` to the sampler's times. ``agreeing`` is the share of looks that fit."""

    offset_ns: int
    uncertainty_ns: int
    agreeing: float


def solve_clock(
    look_ns: Ints, look_state: Ints, log_ns: Ints, bounds_ns: tuple[int, int]
) -> SolvedClock | str:
    """Return the offset within ``bounds_ns`` at which most looks agree with the beacon's log.

    ``look_ns[i]`` (the sampler's clock) is when state ``look_state[i]`` (0 or 1) was seen; the
    beacon entered state ``i % 2`` at ``log_ns[i]``. A string says why there is no offset.
    """
    if len(look_ns) < LEAST_LOOKS or len(log_ns) < LEAST_LOOKS:
        return f"the sampler saw the beacon {len(look_ns)} times; {LEAST_LOOKS} are needed"
    low, high = bounds_ns
    coarse = np.arange(low - COARSE_NS, high + 2 * COARSE_NS, COARSE_NS, dtype=np.int64)
    best = coarse[int(np.argmax(_agreement(coarse, look_ns, look_state, log_ns)))]
    reach = 3 * COARSE_NS
    fine = np.arange(best - reach, best + reach, FINE_NS, dtype=np.int64)
    fits = _agreement(fine, look_ns, look_state, log_ns)
    top = float(fits.max())
    if top < LEAST_AGREEING:
        return f"at best {top:.0%} of the sampler's looks agree with the beacon's log"
    # Late stamps make a few looks disagree near the truth: those within one look are as good.
    good = fine[fits >= top - 1.5 / len(look_ns)]
    return SolvedClock(int(good[0] + good[-1]) // 2, int(good[-1] - good[0]) // 2 + FINE_NS, top)


def _agreement(
    offsets: Ints, look_ns: Ints, look_state: Ints, log_ns: Ints
) -> npt.NDArray[np.float64]:
    fits = np.empty(len(offsets))
    for at, offset in enumerate(offsets):
        state = (np.searchsorted(log_ns, look_ns + offset, side="right") - 1) % 2
        fits[at] = np.mean(state == look_state)
    return fits


def blind_stretches(look_ns: Ints, log_ns: Ints, least_ns: int) -> list[tuple[int, int]]:
    """Stretches of at least ``least_ns`` in which the beacon changed and the sampler saw nothing.

    Both in one clock and ascending; ``look_ns`` are all moments at which the sampler recorded any
    change. A stretch begins with the first change that it missed: while a long call holds the
    interpreter's lock nothing changes, the beacon neither, and that is not blindness.
    """
    if len(look_ns) < 2:
        return []
    before, after = look_ns[:-1], look_ns[1:]
    missed = np.searchsorted(log_ns, before, side="right")
    # The beacon must have changed well within the gap for the sampler to owe us a look.
    first = np.where(missed < len(log_ns), log_ns[np.minimum(missed, len(log_ns) - 1)], after)
    blind = np.flatnonzero((after - first >= least_ns) & (first < after))
    return [(int(first[one]), int(after[one])) for one in blind]
