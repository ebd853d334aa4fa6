"""A sampler's clock from its view of a beacon thread, and the stretches in which it saw nothing.

The beacon alternates between two states and logs when. The sampler's times are off by one unknown
constant, and it stamps a look some time after it looked: where cores are short it may be put aside
in between. So the offset is the one under which the looks are most likely, each of them on time or
late; what other offsets are nearly as likely is the uncertainty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
COARSE_NS = 1_000_000
FINE_NS = 50_000
REACH_NS = 8_000_000
LEAST_LOOKS = 8
LEAST_GAIN = 10.0
"""How much likelier than looks at random moments, in nats."""
WIDEST_NS = 4_000_000
LATE_SHARE = 0.25
LATE_NS = (3_000_000, 12_000_000)
WRONG_SHARES = (0.02, 0.1, 0.3)
"""A quarter of the stamps is late, by one of these on average, and one of these shares of the looks
shows anything: whatever makes the looks likeliest, for that depends on how short cores are."""
_LATE_STEPS = 12


@dataclass(frozen=True, slots=True)
class SolvedClock:
    """Add ``offset_ns`` to the sampler's times. ``uncertainty_ns`` is two standard deviations;
    ``agreeing`` is the largest share of looks that fit, none late, within
    it."""

    offset_ns: int
    uncertainty_ns: int
    agreeing: float


def solve_clock(
    look_ns: Ints, look_state: Ints, log_ns: Ints, bounds_ns: tuple[int, int]
) -> SolvedClock | str:
    """Return the offset near ``bounds_ns`` under which the looks at the beacon are most likely.

    ``look_ns[i]`` (the sampler's clock) is when state ``look_state[i]`` (0 or 1) was seen; the
    beacon entered state ``i % 2`` at ``log_ns[i]``. A string says why there is no offset.
    """
    if len(look_ns) < LEAST_LOOKS or len(log_ns) < LEAST_LOOKS:
        return f"the sampler saw the beacon {len(look_ns)} times; {LEAST_LOOKS} are needed"
    low, high = bounds_ns
    coarse = np.arange(low - COARSE_NS, high + 2 * COARSE_NS, COARSE_NS, dtype=np.int64)
    best = coarse[int(np.argmax(_agreement(coarse, look_ns, look_state, log_ns)))]
    fine = np.arange(best - REACH_NS, best + REACH_NS, FINE_NS, dtype=np.int64)
    nats = _likelihood(fine, look_ns, look_state, log_ns)
    offset, deviation = _moments(fine, nats)
    uncertainty = round(2 * deviation) + FINE_NS
    near = fine[np.abs(fine - offset) <= uncertainty]
    agreeing = float(_agreement(near, look_ns, look_state, log_ns).max())
    if nats.max() + len(look_ns) * np.log(2) < LEAST_GAIN:
        return f"at best {agreeing:.0%} of the sampler's looks agree with the beacon's log"
    if uncertainty > WIDEST_NS:
        return f"{len(look_ns)} looks leave it uncertain by {uncertainty / 1e6:.0f} ms"
    return SolvedClock(offset, uncertainty, agreeing)


def _moments(offsets: Ints, nats: Floats) -> tuple[int, float]:
    """Mean and standard deviation of the offset, ns."""
    weights = np.exp(nats - nats.max())
    weights /= weights.sum()
    since = (offsets - offsets[0]).astype(np.float64)
    mean = float(since @ weights)
    return int(offsets[0]) + round(mean), float(np.sqrt((since - mean) ** 2 @ weights))


def _likelihood(offsets: Ints, look_ns: Ints, look_state: Ints, log_ns: Ints) -> Floats:
    """Logarithm of how likely the looks are under each offset, with the noise that fits best."""
    best = np.full(len(offsets), -np.inf)
    for late_ns in LATE_NS:
        fits = _chances(offsets, (look_ns, look_state), log_ns, late_ns)
        for wrong in WRONG_SHARES:
            nats = np.log(wrong / 2 + (1 - wrong) * fits).sum(axis=1)
            best = nats if nats.max() > best.max() else best
    return best


def _chances(offsets: Ints, looks: tuple[Ints, Ints], log_ns: Ints, late_ns: int) -> Floats:
    """For each offset and look, the share of possible delays with which it fits."""
    late = -late_ns * np.log(1 - (np.arange(_LATE_STEPS) + 0.5) / _LATE_STEPS)
    delays = np.concatenate(([0.0], late)).astype(np.int64)
    share = np.array([1 - LATE_SHARE] + [LATE_SHARE / _LATE_STEPS] * _LATE_STEPS)
    times, states = looks
    fits = np.empty((len(offsets), len(times)))
    for at, offset in enumerate(offsets):
        moments = (times + offset)[None, :] - delays[:, None]
        fits[at] = share @ ((np.searchsorted(log_ns, moments, side="right") - 1) % 2 == states)
    return fits


def _agreement(offsets: Ints, look_ns: Ints, look_state: Ints, log_ns: Ints) -> Floats:
    fits = np.empty(len(offsets))
    for at, offset in enumerate(offsets):
        state = (np.searchsorted(log_ns, look_ns + offset, side="right") - 1) % 2
        fits[at] = np.mean(state == look_state)
    return fits


def blind_stretches(
    look_ns: Ints, log_ns: Ints, least_ns: int, uncertainty_ns: int = 0
) -> list[tuple[int, int]]:
    """Stretches of at least ``least_ns`` in which the beacon changed and the sampler saw nothing.

    Both ascending and in one clock, known within ``uncertainty_ns``, whatever of which a stretch
    must last so long; ``look_ns`` are all moments at which the sampler recorded any change. A
    stretch begins with the first change that it missed: while a long call holds the interpreter's
    lock nothing changes, the beacon neither, and that is not blindness.
    """
    if len(look_ns) < 2:
        return []
    before, after = look_ns[:-1], look_ns[1:]
    missed = np.searchsorted(log_ns, before + uncertainty_ns, side="right")
    # The beacon must have changed well within the gap for the sampler to owe us a look.
    first = np.where(missed < len(log_ns), log_ns[np.minimum(missed, len(log_ns) - 1)], after)
    blind = np.flatnonzero((after - uncertainty_ns - first >= least_ns) & (first < after))
    return [(int(first[one]), int(after[one])) for one in blind]
