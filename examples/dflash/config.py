"""The sizes the pipeline comes in: what a run is, as opposed to how it is coded (``knobs.py``)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Model:
    """Shapes of target and drafter. ``window`` is W of the sliding layers, in tokens.

    ``exposed`` is A, the number of hidden states the target hands on; ``gamma`` the decay of the
    loss over a block; ``dtype`` that of the target's weights and of the drafter's arithmetic.
    """

    width: int
    heads: int
    vocabulary: int
    target_layers: int
    exposed: int
    drafter_layers: int
    window: int
    gamma: float
    dtype: str
    learning_rate: float


@dataclass(frozen=True)
class Timing:
    """How long the simulated devices take, in ms.

    A target step takes ``target_ms`` ± ``target_spread`` (a share), one in ``long_every`` takes
    ``long_factor`` times as long. After ``stall_every`` steps of each, all drafters stand still for
    ``stall_ms`` together (a checkpoint). The rest is what the knobs add: ``item_ms`` for one
    ``.item()``, ``mask_ms`` for a second compiled mask, ``eager_mask_ms`` for not compiling one,
    ``docids_ms``, ``recompile_ms``, ``churn_ms``, ``unpinned_ms`` likewise.
    """

    target_ms: float = 30.0
    target_spread: float = 0.5
    long_every: int = 25
    long_factor: float = 10.0
    post_ms: float = 6.0
    drafter_ms: float = 13.5
    stall_every: int = 45
    stall_ms: float = 400.0
    item_ms: float = 1.0
    mask_ms: float = 1.0
    eager_mask_ms: float = 7.0
    docids_ms: float = 4.0
    recompile_ms: float = 20.0
    churn_ms: float = 3.0
    unpinned_ms: float = 4.0


@dataclass(frozen=True)
class Size:
    """One size. ``slots`` is S, ``anchors`` N, ``block`` B. Exactly one of ``model`` (real torch)
    and ``timing`` (simulated devices) is given; ``accelerated`` sizes need CUDA."""

    name: str
    targets: int
    drafters: int
    slots: int
    anchors: int
    block: int
    model: Model | None = None
    timing: Timing | None = None
    accelerated: bool = False

    def declaration(self) -> dict[str, Any]:
        """Return every field as plain JSON data: what two sessions must share to be compared."""
        fields = {key: value for key, value in asdict(self).items() if key != "name"}
        return {"size": self.name, **fields}


_LARGE = Model(
    width=1024,
    heads=8,
    vocabulary=32_768,
    target_layers=12,
    exposed=5,
    drafter_layers=5,
    window=2048,
    gamma=7.0,
    dtype="bfloat16",
    learning_rate=6e-4,
)

SIZES: Mapping[str, Size] = {
    size.name: size
    for size in (
        Size("simulated", 5, 3, slots=1024, anchors=64, block=16, timing=Timing()),
        Size(
            "cpu",
            1,
            1,
            slots=512,
            anchors=32,
            block=8,
            model=Model(
                width=128,
                heads=4,
                vocabulary=1024,
                target_layers=6,
                exposed=3,
                drafter_layers=3,
                window=128,
                gamma=4.0,
                dtype="float32",
                learning_rate=2e-3,
            ),
        ),
        Size("h200", 2, 1, slots=4096, anchors=512, block=16, model=_LARGE, accelerated=True),
        Size("eight", 5, 3, slots=4096, anchors=512, block=16, model=_LARGE, accelerated=True),
    )
}


def named_size(name: str) -> Size:
    """Return the size called ``name``; raises ``ValueError`` that lists the names there are."""
    if name not in SIZES:
        raise ValueError(f"DFLASH_SIZE={name!r} is not a size; sizes are {', '.join(SIZES)}")
    return SIZES[name]


def cuda_devices() -> int:
    """Return the CUDA devices torch can use; without an NVIDIA driver torch is not even loaded."""
    if not Path("/dev/nvidiactl").exists():
        return 0
    import torch

    return torch.cuda.device_count()


def sizes_here(environment: Mapping[str, str] = os.environ) -> list[Size]:
    """Return the sizes this machine measures: ``DFLASH_SIZE``, else by its devices.

    Without CUDA ``simulated`` and ``cpu``, with one device ``h200``, with more ``eight``. Raises
    ``ValueError`` for an unknown name.
    """
    if environment.get("DFLASH_SIZE"):
        return [named_size(environment["DFLASH_SIZE"])]
    devices = cuda_devices()
    names = ["simulated", "cpu"] if devices == 0 else ["h200"] if devices == 1 else ["eight"]
    return [SIZES[name] for name in names]
