"""What the evidence pass of one session found, as it is stored with it and with its baseline."""

from __future__ import annotations

from .base import Record
from .causes import CauseTable
from .result import FrameResult, NativeFrameResult, ThreadResult

NATIVE_NOT_ASKED = "not asked for (--tokbudget-native)"


class DeviceLedgerMs(Record, frozen=True, kw_only=True):
    """One device, ms a step.

    ``rows_ms`` sum to ``step_ms``, the step of the timing pass: kernel time as traced, which a
    trace hardly changes, and idle time as measured, priced by the replay; what it cannot explain
    is a row of its own. ``traced_ms`` is the exact partition of the traced window and sums to the
    traced step; its idle time is partly the tracer's own.
    """

    device: str
    step_ms: float
    busy_ms: float
    rows_ms: dict[str, float]
    traced_ms: dict[str, float] = {}


class Evidence(Record, frozen=True, kw_only=True):
    """All that was found beside the rate; what is missing stands under ``unavailable`` by name.

    ``counters`` are means a step, ``counters_by_step`` the counts behind them (left out of
    baselines); ``memory`` are bytes by name; ``sentences`` say what stands out, most important
    first; ``sampling`` and ``native_sampling`` state samples, rate and seconds of the stacks and of
    the native ones. ``frames_ms`` is what each hot frame costs its threads, ms a step of the timing
    pass, in the order of ``hot_frames``. ``perturbation`` maps an instrument to the rate under it
    over that of the timing pass.
    """

    ledgers: list[DeviceLedgerMs] = []
    causes: CauseTable | None = None
    counters: dict[str, float] = {}
    counters_by_step: dict[str, list[int]] = {}
    memory: dict[str, float] = {}
    hot_frames: list[FrameResult] = []
    native_frames: list[NativeFrameResult] = []
    frames_ms: list[float] = []
    threads: list[ThreadResult] = []
    sentences: list[str] = []
    sampling: str = ""
    native_sampling: str = ""
    perturbation: dict[str, float] = {}
    unavailable: dict[str, str] = {}
