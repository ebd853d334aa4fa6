"""The interpreter's lock, taken out of a trace: how long each stretch of Python ran by itself.

A trace shows when a stretch of Python began to want the lock and when it was done, its waiting
included. The lock serves in turn: a stretch was served from the moment it came, or from the moment
all that came before it were done, whichever is later.
"""

from __future__ import annotations

import numpy as np

from .replay_program import FloatArray, Program


def served_ns(program: Program, wanted: FloatArray) -> FloatArray:
    """How long each event's stretch of Python held the lock, as the trace shows it.

    ``wanted`` has one entry a host event of the program: how long after it began to want the lock
    (at the beginning of its gap, or after sleeping first) it was done with it, 0 where it needs
    none.
    """
    host = program.host
    begin = _traced_begins(program)
    begin += np.where(host.idle_first, host.sleep_ns + host.wait_ns, 0.0)
    asks = np.flatnonzero(wanted > 0)
    order = asks[np.argsort(begin[asks], kind="stable")]
    came, done = begin[order], (begin + wanted)[order]
    # A stretch that takes the lock several times lets others in between; it came first, so all of
    # the time is booked on it. The sum over threads, which is what limits them, stays right.
    before = np.concatenate(([-np.inf], np.maximum.accumulate(done)[:-1]))
    result = np.zeros_like(wanted)
    result[order] = np.maximum(done - np.maximum(came, before), 0.0)
    return result


def _traced_begins(program: Program) -> FloatArray:
    """When, in the trace, the gap before each event began, from the window's start."""
    host = program.host
    total = host.own_ns + host.sleep_ns + host.wait_ns
    total = total + host.call_ns + host.stall_ns + host.blocked_ns
    begin = np.empty(len(host))
    for lane in range(len(program.lane_bounds) - 1):
        mine = slice(program.lane_bounds[lane], program.lane_bounds[lane + 1])
        begin[mine] = np.cumsum(total[mine]) - total[mine]
    return begin
