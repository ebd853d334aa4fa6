"""``run.json``: the stable machine-readable contract. Names and units are fixed.

Values not known are ``null``, with the reason under ``unavailable``.
"""

from __future__ import annotations

from .base import SCHEMA, Record
from .machine import MachineRecord
from .workload import JsonValue

COUNTING = "counting"
LIMITING = "limiting"
"""What the threads of a hot frame are to the rate: ``FrameResult.threads_are``."""


class StepMs(Record, frozen=True, kw_only=True):
    """Percentiles of step time, in ms."""

    p50: float
    p95: float
    max: float


class DeviceResult(Record, frozen=True, kw_only=True):
    """One device. ``ledger`` maps cause → ms per step and sums to the step."""

    uuid: str | None
    name: str
    busy_ms_per_step: float | None = None
    idle_pct: float | None = None
    ledger: dict[str, float] | None = None


class ThreadResult(Record, frozen=True, kw_only=True):
    """One thread of the measured process; ``cpu_pct`` of one core."""

    name: str
    tid: int
    role: str | None = None
    cpu_pct: float | None = None


class FrameResult(Record, frozen=True, kw_only=True):
    """One hot frame in the threads of one role, or in those without; ``share`` of all samples,
    0 … 1; ``cpu_s`` of it on a CPU, over all its threads.

    ``caller`` is set where the frame only sleeps: ``"function (file:line)"``. ``ms_per_step`` is
    what the frame costs its threads, all together; ``None`` where no step ended in the sampled
    window. ``thread_share`` is the same of all the time of its ``threads``, 0 … 1: CPU time, and in
    threads that mark steps all that is no wait for others. ``threads_are`` says what they are to
    the rate: ``"counting"`` (they count the steps), ``"limiting"`` (they are of the role that
    limits), or neither.
    """

    function: str
    file: str
    line: int
    share: float
    samples: int
    threads: list[str]
    caller: str | None = None
    cpu_s: float | None = None
    ms_per_step: float | None = None
    thread_share: float | None = None
    threads_are: str | None = None


class NativeFrameResult(Record, frozen=True, kw_only=True):
    """What native code ran most, by the Python function that called it.

    ``function`` of ``library`` (a file's base name) was innermost; ``"no symbol"`` stands for all
    of a library that has no names. Where Python itself ran, ``library`` is ``"interpreter"``.
    ``caller`` is the nearest Python function above, at ``file:line`` (``None``: none above, as in a
    thread that a library started); where that is a library's too, ``called_from`` is the user's
    code that called it, ``"function (file:line)"``. ``share``, 0 … 1, and ``cpu_s`` are of the
    CPU time of those threads that Python knows.
    """

    function: str
    library: str
    caller: str | None
    file: str | None
    line: int | None
    called_from: str | None = None
    share: float
    cpu_s: float
    samples: int
    threads: list[str]


class QueueResult(Record, frozen=True, kw_only=True):
    """One queue over the timing passes of the counted sessions, summed.

    Seconds in which a worker was inside ``put`` or ``get``; the ``_pct`` are their share of the
    time of all workers on that side. ``occupancy`` maps depth → share of time, 0 … 1;
    ``low_water_dips`` counts how often the depth fell below ``low_water``.
    """

    name: str
    capacity: int | None
    put_blocked_s: float
    get_blocked_s: float
    put_blocked_pct: float | None = None
    get_blocked_pct: float | None = None
    puts: int
    gets: int
    mean_depth: float | None
    occupancy: dict[str, float] | None = None
    low_water: int | None = None
    low_water_dips: int | None = None


class Finding(Record, frozen=True, kw_only=True):
    """One ranked, grounded statement. Milliseconds per step, positive delta is slower.

    A changed counter (cause ``"counter: kernel_launches"``) has no milliseconds of its own; it has
    ``count_per_step`` and ``baseline_count_per_step``, by its name in ``TestResult.counters``.
    ``summed_threads`` is set where the milliseconds are the sum over that many threads, which may
    be more than a step.

    ``method`` says how the milliseconds were found: ``"growth"`` against the baseline or
    ``"what-if"`` on a replay; ``other_method_ms_per_step`` is what the other way gives. They are
    ``approximate`` where the two differ by more than 20 %, or the replay misses the timing pass.
    """

    cause: str
    device: str | None = None
    thread: str | None = None
    file: str | None = None
    line: int | None = None
    ms_per_step: float | None = None
    baseline_ms_per_step: float | None = None
    delta_ms_per_step: float | None = None
    samples: int | None = None
    method: str | None = None
    other_method_ms_per_step: float | None = None
    approximate: bool = False
    summed_threads: int | None = None
    count_per_step: float | None = None
    baseline_count_per_step: float | None = None


class TestResult(Record, frozen=True, kw_only=True):
    """One measured test. ``outcome`` is a verdict name, or ``"FAILED"``/``"SKIPPED"`` when the body
    did not get to a verdict.

    ``reason`` holds one sentence a line, most important first. ``steps`` is the fewest a counted
    session measured and ``warmup_steps`` the most one warmed up; ``step_ms`` and ``queues`` are
    over all counted sessions together; ``stalled_pct`` is the share of their step time above twice
    the median step, 0 … 100: what stalls cost, to which low percentiles are blind.
    ``changed_counters`` are exact ones that differ from the baseline's, (then, now) a step;
    ``ledger_changes`` maps device → row of its ledger → ms a step more than with the baseline,
    which sum to the slow-down; ``sentences`` say what stands out on the host; ``sampling`` and
    ``native_sampling`` state what the hot and the native frames rest on. ``against`` is the git ref
    of an A/B, whose rate ``baseline_tok_s`` is then, and empty for a stored baseline.
    """

    __test__ = False

    nodeid: str
    outcome: str
    reason: str
    tok_s: float | None = None
    token_kind: str | None = None
    token_scope: str | None = None
    baseline_tok_s: float | None = None
    against: str = ""
    change_pct: float | None = None
    ci_pct: tuple[float, float] | None = None
    mde_pct: float | None = None
    tolerance_pct: float | None = None
    floor_tok_s: float | None = None
    sessions: list[dict[str, JsonValue]] | None = None
    steps: int | None = None
    warmup_steps: int | None = None
    step_ms: StepMs | None = None
    stalled_pct: float | None = None
    devices: list[DeviceResult] | None = None
    threads: list[ThreadResult] | None = None
    hot_frames: list[FrameResult] | None = None
    native_frames: list[NativeFrameResult] | None = None
    queues: list[QueueResult] | None = None
    counters: dict[str, float] | None = None
    findings: list[Finding] | None = None
    changed_counters: dict[str, tuple[float, float]] | None = None
    ledger_changes: dict[str, dict[str, float]] | None = None
    sentences: list[str] | None = None
    sampling: str | None = None
    native_sampling: str | None = None
    perturbation: dict[str, float] | None = None
    unavailable: dict[str, str] = {}


class RunResult(Record, frozen=True, kw_only=True):
    """The whole of ``run.json``. ``created`` is ISO 8601 in UTC."""

    schema: int = SCHEMA
    created: str
    commit: str | None
    machine: MachineRecord | None
    tests: list[TestResult]
