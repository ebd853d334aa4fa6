"""How often torch compiled: frames, and why compiled code was thrown away."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_tokbudget.records.base import Unavailable


@dataclass(frozen=True, slots=True)
class Compilations:
    """Counts of a stretch: frames that dynamo compiled, graph breaks, and its reasons for them."""

    frames: int
    graph_breaks: int
    reasons: dict[str, int] = field(default_factory=dict)

    def counters_per_step(self, steps: int) -> dict[str, float]:
        """Counters as ``run.json`` names them."""
        return {
            "recompilations": self.frames / steps,
            "graph_breaks": self.graph_breaks / steps,
        }


class CompilationProbe:
    """Reads dynamo's counters, if the workload has loaded dynamo; it never loads it itself."""

    def __init__(self, modules: Mapping[str, Any] | None = None) -> None:
        self._modules = sys.modules if modules is None else modules
        self._frames = 0
        self._breaks: dict[str, int] = {}

    def start(self) -> None:
        """Remember the counts."""
        found = self._counts()
        self._frames, self._breaks = found or (0, {})

    def stop(self) -> Compilations | Unavailable:
        """What was compiled since ``start``; ``Unavailable`` where dynamo is not in use."""
        found = self._counts()
        if found is None:
            return Unavailable("the workload does not use torch.compile")
        frames, breaks = found
        reasons = {
            reason: count - self._breaks.get(reason, 0)
            for reason, count in breaks.items()
            if count > self._breaks.get(reason, 0)
        }
        return Compilations(frames - self._frames, sum(reasons.values()), reasons)

    def _counts(self) -> tuple[int, dict[str, int]] | None:
        dynamo = self._modules.get("torch._dynamo.utils")
        counters = getattr(dynamo, "counters", None)
        if counters is None:
            return None
        # Looked at with get: the counters are defaultdicts, and asking must not create entries.
        frames = (counters.get("frames") or {}).get("total", 0)
        breaks = counters.get("graph_break") or {}
        return int(frames), {str(reason): int(count) for reason, count in breaks.items()}
