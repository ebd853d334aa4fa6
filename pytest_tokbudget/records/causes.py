"""What slows a step, cause by cause, as it is stored with a session and with its baseline."""

from __future__ import annotations

from .base import Record


class CauseMs(Record, frozen=True, kw_only=True):
    """One cause, in ms a step.

    ``direct_ms`` is the host time that the trace shows under it (waiting included), tracer and all;
    ``from_timing`` says that it is of the timing pass instead, where nothing was attached (queue
    calls are recorded there too). ``what_if_ms`` is its row of the replay (rows sum to the replayed
    step), ``alone_ms`` what the replayed step would be shorter without it alone; ``None`` where
    nothing could be replayed. ``function``, ``file``, ``line`` and ``samples`` are those of named
    Python; of calls that block the last three alone, the line that made most of them. ``devices``
    are the devices whose work the thread launches.
    """

    cause: str
    thread: str | None = None
    function: str | None = None
    file: str | None = None
    line: int | None = None
    samples: int | None = None
    devices: list[str] = []
    direct_ms: float
    from_timing: bool = False
    what_if_ms: float | None = None
    alone_ms: float | None = None


class DeviceMs(Record, frozen=True, kw_only=True):
    """One device, in ms a step: union of its kernels, what communication and copies add to that,
    and the spacing between queued kernels. ``stream_wait_ms`` is the part of the kernels' time in
    which it ran only what a stream was told to wait for; ``None`` where that is not known."""

    device: str
    busy_ms: float
    exposed_communication_ms: float = 0.0
    exposed_copy_ms: float = 0.0
    spacing_ms: float = 0.0
    stream_wait_ms: float | None = None


class CauseTable(Record, frozen=True, kw_only=True):
    """All causes of one session.

    ``step_ms`` is the timing pass, ``traced_step_ms`` the evidence pass; ``counting_thread`` makes
    the marks that count; ``launch_call_us`` is the median launch call that did not block, in the
    trace: how fast its host was. ``unexplained_ms`` is the timing pass less the replay, ``None``
    where the host's speed was solved on that very timing pass (a zero then proves nothing);
    ``approximate`` says why the replay is not to be trusted to the per cent, ``""`` if it is.
    """

    step_ms: float
    traced_step_ms: float
    devices: list[DeviceMs]
    causes: list[CauseMs]
    counting_thread: str | None = None
    launch_call_us: float | None = None
    replayed_step_ms: float | None = None
    unexplained_ms: float | None = None
    approximate: str = ""
