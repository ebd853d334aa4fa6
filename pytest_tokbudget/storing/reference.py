"""The evidence that a baseline keeps, to compare later evidence with: small, and good to diff."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..analysis.cpu_summary import MOST_FRAMES
from ..records.evidence import Evidence
from ..records.run import RunRecord

MOST_CAUSES = 30
MOST_THREADS = 8


def reference_of(runs: Sequence[RunRecord]) -> Evidence | None:
    """Return the evidence of the first of ``runs`` that has any, without its bulk."""
    found = next((run.evidence for run in runs if run.evidence is not None), None)
    if found is None:
        return None
    causes = found.causes
    if causes is not None:
        most = sorted(
            causes.causes, key=lambda one: -max(abs(one.direct_ms), abs(one.what_if_ms or 0.0))
        )
        causes = replace(causes, causes=most[:MOST_CAUSES])
    return replace(
        found,
        causes=causes,
        ledgers=[replace(one, traced_ms={}) for one in found.ledgers],
        counters_by_step={},
        hot_frames=found.hot_frames[:MOST_FRAMES],
        frames_ms=found.frames_ms[:MOST_FRAMES],
        threads=found.threads[:MOST_THREADS],
        # Nothing is compared with the native frames of another run.
        native_frames=[],
        native_sampling="",
        unavailable={
            name: why for name, why in found.unavailable.items() if not name.startswith("native_")
        },
    )
