"""The device side of a replay: when each kernel runs.

A stream serves its kernels in order: start = max(end of the one before + spacing, ready). This is
Lindley's recursion (D. V. Lindley, "The theory of queues with a single server", 1952); with
S the running sum of (spacing + duration), end − S is a running maximum, which numpy accumulates.
"""

from __future__ import annotations

import numpy as np

from .replay_plan import Plan
from .replay_program import FloatArray
from .timeline import IntArray


class Streams:
    """Streams of a replay in progress. ``ends_ns[k]`` is NaN until kernel ``k`` has been run."""

    def __init__(self, plan: Plan) -> None:
        device = plan.device
        self.ends_ns: FloatArray = np.full(len(device), np.nan)
        self._stream = device.stream
        self._dur, self._spacing = device.dur_ns, device.spacing_ns
        self._latency = plan.latency_ns
        self._free = [float(one) for one in plan.carried_ns]
        self._single = len(self._free) == 1
        self._devices: dict[int, list[int]] = {}
        for stream, of_device in enumerate(plan.program.stream_device):
            self._devices.setdefault(int(of_device), []).append(stream)
        # Plain element access through memoryviews is several times faster than through numpy.
        self._one_stream = np.ascontiguousarray(device.stream).data
        self._one_dur = np.ascontiguousarray(device.dur_ns).data
        self._one_spacing = np.ascontiguousarray(device.spacing_ns).data
        self._one_after = np.ascontiguousarray(device.after).data
        self._one_lag = np.ascontiguousarray(device.lag_ns).data
        self._one_end = self.ends_ns.data
        self._one_latency = [float(one) for one in plan.latency_ns]

    def launch(self, first: int, last: int, call_end: FloatArray) -> None:
        """Run kernels ``first`` … ``last − 1`` whose launch calls end at ``call_end``."""
        if self._single:
            self._serve(slice(first, last), call_end, 0)
            return
        of = self._stream[first:last]
        for stream in np.unique(of):
            mine = np.flatnonzero(of == stream)
            self._serve(mine + first, call_end[mine], int(stream))

    def _serve(self, which: slice | IntArray, call_end: FloatArray, stream: int) -> None:
        work = np.cumsum(self._spacing[which] + self._dur[which])
        ready = call_end + self._latency[stream]
        reach = ready + self._dur[which] - work
        reach[0] = max(reach[0], self._free[stream])
        ends = np.maximum.accumulate(reach, out=reach)
        ends += work
        self.ends_ns[which] = ends
        self._free[stream] = float(ends[-1])

    def launch_one(self, kernel: int, ready: float) -> float:
        """Run one kernel that may begin at ``ready``; return its end."""
        stream = self._one_stream[kernel]
        start = max(self._free[stream] + self._one_spacing[kernel], ready)
        after = self._one_after[kernel]
        if after >= 0 and self._one_end[after] == self._one_end[after]:
            start = max(start, self._one_end[after] + self._one_lag[kernel])
        end = start + self._one_dur[kernel]
        self.ends_ns[kernel] = end
        self._free[stream] = end
        return end

    def latency_of(self, kernel: int) -> float:
        """Launch latency of a kernel's stream."""
        return self._one_latency[self._one_stream[kernel]]

    def start_of(self, kernel: int) -> float:
        """When a kernel that has been run began."""
        return float(self._one_end[kernel] - self._one_dur[kernel])

    def end_of(self, kernel: int) -> float:
        """When a kernel that has been run ended; NaN if it has not."""
        return float(self._one_end[kernel])

    def stream_free(self, stream: int) -> float:
        """When everything launched on a stream so far is done."""
        return self._free[stream]

    def device_free(self, device: int) -> float:
        """When everything launched on a device so far is done."""
        return max((self._free[one] for one in self._devices.get(device, [])), default=0.0)
