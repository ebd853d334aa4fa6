"""What the CPUs did during the evidence pass: stacks, true thread clocks, collections, the GIL.

Times are monotonic ns of the measured process, as in ``marks.py``.
"""

from __future__ import annotations

from .base import Record


class SampledThread(Record, frozen=True, kw_only=True):
    """A thread whose stacks were sampled. ``native_id`` is 0 where the sampler could not read it.

    ``lag_ns`` is how much later than a round's time this thread was read, for the threads of a
    process are read one after another.
    """

    name: str
    native_id: int
    lag_ns: int = 0


class SampledStacks(Record, frozen=True, kw_only=True):
    """Sampled stacks as a compact table.

    ``frames`` are ``(function, file, line)``, ``source`` the text of each line (``""``: not read);
    ``stacks`` are indices into them, root first.
    ``round_ns`` are the moments at which the sampler is known to have looked at all threads. Run
    ``i`` says that thread ``run_thread[i]`` had stack ``run_stack[i]`` in the rounds
    ``run_first[i] … run_last[i] − 1``; a round stands for the time until the next one.
    ``blind`` are stretches in which the sampler saw nothing; they are left out of everything.
    ``samples`` counts thread × round as the sampler did, ``rate_hz`` is what it achieved of
    ``asked_hz`` over ``seconds`` (blind stretches not counted). ``clock_uncertainty_ns`` is two
    standard deviations of what the beacon told of the clock. Where it told nothing ``unaligned``
    says why: the times are then good for tables, not to be compared with a trace's.
    ``own_cpu_pct`` is what the sampler cost, of one core.
    """

    frames: list[tuple[str, str, int]]
    stacks: list[list[int]]
    threads: list[SampledThread]
    round_ns: list[int]
    run_thread: list[int]
    run_stack: list[int]
    run_first: list[int]
    run_last: list[int]
    sampler: str
    asked_hz: float
    rate_hz: float
    samples: int
    seconds: float
    clock_uncertainty_ns: int
    blind: list[tuple[int, int]] = []
    errors: int = 0
    own_cpu_pct: float | None = None
    source: list[str] = []
    unaligned: str = ""


class ThreadClock(Record, frozen=True, kw_only=True):
    """The kernel's account of one thread, or (``native_id`` = ``pid``, ``is_process``) of all
    threads of a child process. Same-length lists; ``cpu_ns`` and ``core_wait_ns`` only grow.

    ``core_wait_ns`` is time ready to run without a core; empty where the kernel keeps no such
    account. ``user_s`` and ``system_s`` are over the whole stretch, to a hundredth of a second.
    """

    pid: int
    native_id: int
    name: str
    role: str | None = None
    is_process: bool = False
    times_ns: list[int]
    cpu_ns: list[int]
    core_wait_ns: list[int] = []
    user_s: float = 0.0
    system_s: float = 0.0


class CoreUse(Record, frozen=True, kw_only=True):
    """CPU seconds of all cores that the process may use: of its process tree, of everything else
    (what the hypervisor took included), and idle.

    The tree's are process totals, so they hold threads and reaped children that ended between two
    looks, and our instruments.
    """

    tree_s: float
    others_s: float
    idle_s: float


class ThreadClocks(Record, frozen=True, kw_only=True):
    """Clocks of all threads and child processes, our own left out, as another process read them.

    ``pool_settings`` are the sizes of thread pools as set or in force (``OMP_NUM_THREADS``,
    ``torch.get_num_threads`` …); a name that is not set is absent. ``cores`` is ``None`` where the
    kernel does not tell what its cores do.
    """

    threads: list[ThreadClock]
    usable_cores: int
    seconds: float
    pool_settings: dict[str, str] = {}
    cores: CoreUse | None = None


class CollectorPauses(Record, frozen=True, kw_only=True):
    """One entry a garbage collection; ``native_id`` is the thread that collected."""

    start_ns: list[int] = []
    end_ns: list[int] = []
    generation: list[int] = []
    native_id: list[int] = []


class Interpreter(Record, frozen=True, kw_only=True):
    """The interpreter's lock. ``gil_enabled`` is false on a free-threaded Python running so.

    ``wake_late_ms`` are p50, p95 and the largest of how late a thread that had slept ran Python
    again; ``wake_core_ms`` is the mean part of it that was a wait for a core (``None``: unknown).
    The rest is the GIL, but for the timer's 0.1 ms. ``wakes`` is how many of them there were.
    """

    free_threaded_build: bool
    gil_enabled: bool
    switch_interval_ms: float
    wakes: int = 0
    wake_late_ms: tuple[float, float, float] | None = None
    wake_core_ms: float | None = None


class CpuRecord(Record, frozen=True, kw_only=True):
    """All CPU evidence of one session; what is missing stands under ``unavailable``.

    ``workers`` are the native ids of the threads that marked steps.
    """

    start_ns: int
    end_ns: int
    stacks: SampledStacks | None = None
    clocks: ThreadClocks | None = None
    pauses: CollectorPauses = CollectorPauses()
    interpreter: Interpreter | None = None
    workers: list[int] = []
    unavailable: dict[str, str] = {}
