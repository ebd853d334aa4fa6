"""The knobs: each stands for a change of the code that once cost throughput.

They are set as ``DFLASH="depth=20 post=sync"`` and are no part of the workload's declaration, since
a change of the code meets the baseline of the code before it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from .config import Size

CHOICES: Mapping[str, tuple[str, ...]] = {
    "post": ("async", "sync"),
    "sync": ("batched", "each"),
    "mask": ("compiled", "eager"),
    "docids": ("repeat_interleave", "python_loop"),
    "anchors": ("fixed", "variable"),
    "alloc": ("cached", "churn"),
    "pin": ("yes", "no"),
    "gc": ("normal", "heavy"),
}
RANGES: Mapping[str, tuple[int, int]] = {
    "depth": (1, 10_000),
    "min_ready": (1, 10_000),
    "masks": (1, 2),
    "log_every": (1, 1_000_000),
    "stall_every": (0, 1_000_000),
    "spin": (0, 256),
}
NEEDS_DEVICE = ("alloc", "pin")


@dataclass(frozen=True)
class Knobs:
    """How the pipeline is coded. Defaults are the good code.

    ``depth`` and ``min_ready`` are those of the queue; ``post`` whether packing and copying stand
    on the target's critical path; ``sync`` whether figures are read one ``.item()`` after another;
    ``masks`` how many masks a step builds (2: mixed full and sliding layers) and ``mask`` how;
    ``stall_every`` makes all targets stall together; ``spin`` threads fight for the GIL.
    """

    depth: int = 60
    min_ready: int = 10
    post: str = "async"
    sync: str = "batched"
    masks: int = 1
    mask: str = "compiled"
    docids: str = "repeat_interleave"
    anchors: str = "fixed"
    alloc: str = "cached"
    pin: str = "yes"
    gc: str = "normal"
    log_every: int = 50
    stall_every: int = 0
    spin: int = 0


def read_knobs(size: Size, environment: Mapping[str, str] = os.environ) -> Knobs:
    """Return the knobs of ``DFLASH``. Raises ``ValueError``, also if ``size`` has no such knob."""
    knobs = parse_knobs(environment.get("DFLASH", ""))
    turned = [name for name in NEEDS_DEVICE if getattr(knobs, name) != getattr(Knobs(), name)]
    if turned and size.model is not None and not size.accelerated:
        raise ValueError(
            f"DFLASH: {' and '.join(turned)} would change nothing on size {size.name!r}, which has "
            "no device memory; try DFLASH_SIZE=simulated or a machine with a GPU"
        )
    return knobs


def parse_knobs(text: str) -> Knobs:
    """Parse ``"depth=20 post=sync"``. Raises ``ValueError`` listing the right names or values."""
    values: dict[str, Any] = {}
    for word in text.split():
        name, sign, value = word.partition("=")
        if not sign or name not in (*CHOICES, *RANGES):
            names = ", ".join(field.name for field in fields(Knobs))
            raise ValueError(f"DFLASH: {word!r} is no knob=value; knobs are {names}")
        if name in values:
            raise ValueError(f"DFLASH: {name!r} is given twice; give it once")
        values[name] = _value(name, value)
    depth = values.get("depth", Knobs.depth)
    ready = values.setdefault("min_ready", min(Knobs.min_ready, depth))
    if ready > depth:
        raise ValueError(
            f"DFLASH: min_ready={ready} is never reached with depth={depth}; give at most {depth}"
        )
    return Knobs(**values)


def _value(name: str, text: str) -> str | int:
    if name in CHOICES:
        if text not in CHOICES[name]:
            raise ValueError(
                f"DFLASH: {name}={text!r} is not a value; it takes {' or '.join(CHOICES[name])}"
            )
        return text
    low, high = RANGES[name]
    if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
        raise ValueError(f"DFLASH: {name}={text!r} is not a whole number from {low} to {high}")
    return int(text)
