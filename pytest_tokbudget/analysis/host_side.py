"""The host side of the gaps: what the launching thread did until it had launched."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .causes import HOST_LABELS, Cause, HostLabels
from .gaps import Gaps
from .intervals import NO_CODE, Labelled, cut, label_stretch
from .launches import calls_of_syncs
from .segments import Segments
from .timeline import ApiKind, IntArray, SmallIntArray, Timeline

_PER_DEVICE = 3  # launch, copy, sync: each knows the device it is for
_LAUNCH, _COPY, _SYNC = range(_PER_DEVICE)
_SET_LIKE_LAUNCH = (ApiKind.LAUNCH, ApiKind.GRAPH_LAUNCH, ApiKind.SET)
_ALLOCATING = (ApiKind.ALLOC, ApiKind.FREE)


@dataclass(slots=True)
class HostSide:
    """Splits host stretches by the driver calls and stacks of their thread.

    Codes put the profiler's stalls first, then the calls of the launching thread, then (for a
    thread without Python) those of its owner, then the labels of the owner's stacks.
    """

    timeline: Timeline
    labels: HostLabels | None
    code: SmallIntArray
    layer: int
    slots: tuple[int, ...]
    _known: dict[tuple[int, int], Labelled] = field(default_factory=dict)

    def split(self, gaps: Gaps, chosen: IntArray, device: int) -> Segments:
        """Partition ``[start, split)`` of the ``chosen`` gaps of ``device``."""
        chosen = chosen[gaps.split_ns[chosen] > gaps.start_ns[chosen]]
        thread, owner = gaps.thread[chosen], gaps.owner[chosen]
        base = len(self.timeline.threads) + 1
        pair = (thread + 1).astype(np.int64) * base + owner + 1
        starts, ends, codes, origin = [], [], [], []
        for key in np.flatnonzero(np.bincount(pair)).tolist():
            mine = chosen[pair == key]
            by = self._stretches(key // base - 1, key % base - 1)
            pieces = cut(gaps.start_ns[mine], gaps.split_ns[mine], by)
            starts.append(pieces.start_ns)
            ends.append(pieces.end_ns)
            codes.append(by.code[pieces.right])
            origin.append(mine[pieces.left])
        if not starts:
            empty = np.zeros(0, np.int64)
            return Segments(empty, empty, empty.astype(np.int8), empty.astype(np.int32), empty)
        cause, partner = self._meanings(device)
        code = np.concatenate(codes)
        return Segments(
            np.concatenate(starts),
            np.concatenate(ends),
            cause[code],
            partner[code],
            np.concatenate(origin),
        )

    def _stretches(self, thread: int, owner: int) -> Labelled:
        """All the time around the window, labelled by what ``thread`` and ``owner`` did."""
        if (thread, owner) not in self._known:
            calls, stalls, window = (
                self.timeline.host_calls,
                self.timeline.stalls,
                self.timeline.window,
            )
            starts, durations = [stalls.start_ns], [stalls.dur_ns]
            codes: list[npt.NDArray[np.int32]] = [np.zeros(len(stalls), np.int32)]
            for layer, one in enumerate([thread] if owner in (thread, -1) else [thread, owner]):
                mine = np.flatnonzero(calls.thread == one)
                starts.append(calls.start_ns[mine])
                durations.append(calls.dur_ns[mine])
                codes.append(self.code[mine] + layer * self.layer)
            if self.labels is not None:
                mine = np.flatnonzero(self.labels.thread == owner)
                starts.append(self.labels.start_ns[mine])
                durations.append(self.labels.end_ns[mine] - self.labels.start_ns[mine])
                codes.append(1 + 2 * self.layer + _label_codes(self.labels.cause[mine]))
            start = np.concatenate(starts)
            self._known[thread, owner] = label_stretch(
                start,
                start + np.concatenate(durations),
                np.concatenate(codes),
                (window.start_ns, window.end_ns),
            )
        return self._known[thread, owner]

    def _meanings(self, device: int) -> tuple[npt.NDArray[np.int8], SmallIntArray]:
        """Cause and partner of each code as ``device`` sees it; the last entry is ``NO_CODE``."""
        one_layer = [
            _meaning(what, target, device)
            for what in range(_PER_DEVICE)
            for target in (-1, *self.slots)
        ]
        one_layer += [(Cause.ALLOCATOR, -1), (Cause.HOST_API, -1)]
        table = [(Cause.PROFILER, -1), *one_layer, *one_layer]
        table += [(label, -1) for label in HOST_LABELS]
        table.append((Cause.HOST_UNATTRIBUTED, -1))
        assert NO_CODE == -1
        return (
            np.array([cause for cause, _ in table], np.int8),
            np.array([partner for _, partner in table], np.int32),
        )


def host_side(timeline: Timeline, launch: IntArray, labels: HostLabels | None) -> HostSide:
    """Prepare the splitting: every call gets the code of what it does, and for which device."""
    events, calls, syncs = timeline.device_events, timeline.host_calls, timeline.syncs
    slots = tuple(
        int(one) for one in np.unique(np.concatenate((events.device, syncs.device))) if one >= 0
    )
    target = np.full(len(calls), -1, np.int32)
    of_sync = calls_of_syncs(timeline)
    target[of_sync[of_sync >= 0]] = syncs.device[of_sync >= 0]
    target[launch[launch >= 0]] = events.device[launch >= 0]
    per_what = len(slots) + 1
    what = np.full(len(calls), -1, np.int32)
    what[np.isin(calls.kind, _SET_LIKE_LAUNCH)] = _LAUNCH
    what[calls.kind == ApiKind.COPY] = _COPY
    what[calls.kind == ApiKind.SYNC] = _SYNC
    slot = np.where(target >= 0, np.searchsorted(np.array(slots), target) + 1, 0)
    plain = _PER_DEVICE * per_what + np.where(np.isin(calls.kind, _ALLOCATING), 0, 1)
    code = 1 + np.where(what >= 0, what * per_what + slot, plain)
    return HostSide(
        timeline, labels, code.astype(np.int32), layer=_PER_DEVICE * per_what + 2, slots=slots
    )


def _label_codes(cause: npt.NDArray[np.int8]) -> SmallIntArray:
    order = {int(label): at for at, label in enumerate(HOST_LABELS)}
    return np.array([order[one] for one in cause.tolist()], np.int32)


def _meaning(what: int, target: int, device: int) -> tuple[Cause, int]:
    """What a call for ``target`` (−1: unknown) means in a gap of ``device``."""
    if what == _SYNC:
        return Cause.HOST_SYNC, target if target != device else -1
    if target == -1:
        return Cause.HOST_API, -1
    if target != device:
        return Cause.SERVING_DEVICE, target
    return (Cause.LAUNCH_CALL if what == _LAUNCH else Cause.COPY_CALL), -1
