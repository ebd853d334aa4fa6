"""The run record: all that one session measured, kept raw, so that it can be judged again."""

from __future__ import annotations

from .base import SCHEMA, Record
from .budget import Budget
from .conditions import Conditions
from .counters import TracedCounters
from .evidence import Evidence
from .machine import MachineRecord
from .marks import GaugeSeries, MarkSeries, QueueSeries, SpanSeries
from .workload import Workload


class WarmUp(Record, frozen=True, kw_only=True):
    """What happened before the timing pass. ``steady`` is false when no steady state was found."""

    steps: int
    seconds: float
    steady: bool
    reason: str = ""


class Pass(Record, frozen=True, kw_only=True):
    """A stretch of steps run with one instrument setting, in monotonic ns.

    ``kind`` is ``"timing"`` or ``"evidence"``; ``tokens`` sums the counted marks by kind; ``tok_s``
    is of the gate's kind. ``held_ns`` is how long the workload was held in between, which is in no
    rate. ``instrument`` is what was attached in an evidence pass. ``recompilations``
    counts the frames that dynamo compiled in a timing pass; ``None``: not counted.
    """

    kind: str
    instrument: str = ""
    start_ns: int
    end_ns: int
    steps: int
    tokens: dict[str, int]
    tok_s: float
    held_ns: int = 0
    recompilations: int | None = None

    @property
    def mean_step_ms(self) -> float:
        """Milliseconds a step, time held left out, of a pass that made steps."""
        return (self.end_ns - self.start_ns - self.held_ns) / 1e6 / self.steps


class CanarySeries(Record, frozen=True, kw_only=True):
    """Readings of one canary: a fixed piece of work that says how fast the machine was.

    ``name`` is ``"host_loop"``, ``"tiny_step"`` (a launch-bound forward and backward),
    ``"device_matmul"`` or ``"device_copy"``; ``device`` is where it ran, ``None`` on the CPU.
    ``where`` is ``"interleaved"`` (inside the timing pass, whose rate leaves it out), ``"before"``
    or ``"after"`` it. ``times_ns`` are the starts.
    """

    name: str
    where: str
    device: str | None = None
    times_ns: list[int]
    durations_ns: list[int]


class RunRecord(Record, frozen=True, kw_only=True):
    """One session. Times are monotonic ns; ``unix_offset_ns`` added gives Unix time.

    ``devices`` are the devices the workload used (``"cuda:0"``, ``"cpu"``, or any name the author
    gave its workers). ``job`` names the invocation of pytest the session belongs to (``""``: not
    kept). ``traced`` are the counts of a device trace, where counters gate. ``unavailable`` maps
    what is missing to the reason.
    """

    schema: int = SCHEMA
    workload: Workload
    budget: Budget
    machine: MachineRecord
    unix_offset_ns: int
    pid: int
    job: str = ""
    devices: list[str]
    warmup: WarmUp
    passes: list[Pass]
    marks: list[MarkSeries]
    spans: list[SpanSeries] = []
    queues: list[QueueSeries] = []
    gauges: list[GaugeSeries] = []
    canaries: list[CanarySeries] = []
    conditions: Conditions | None = None
    evidence: Evidence | None = None
    traced: TracedCounters | None = None
    unavailable: dict[str, str] = {}

    @property
    def timing(self) -> Pass:
        """The timing pass: the only one that judges tok/s."""
        return next(one for one in self.passes if one.kind == "timing")
