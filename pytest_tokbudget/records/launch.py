"""What the controller asks of a worker, and what comes back."""

from __future__ import annotations

from .base import Record
from .run import RunRecord


class Trees(Record, frozen=True, kw_only=True):
    """The two checkouts of an A/B, as absolute paths without symbolic links.

    ``side`` says which one a worker measures: ``"head"``, the tree under test, or ``"ref"``.
    ``kept`` are directories inside ``head`` that belong to the environment and stay what they are
    on both sides: a virtual environment, this package itself.
    """

    head: str
    ref: str
    side: str
    kept: list[str]


class WorkerSpec(Record, frozen=True, kw_only=True):
    """Everything a worker needs, written to a file whose path stands in one environment variable.

    ``args``, ``cwd``, ``sys_path`` and ``argv`` are the controller's own. ``result_path`` is where
    the worker leaves its ``WorkerResult``, ``progress_path`` the memory-mapped progress block
    (``launching/progress.py``). ``randomly_seed`` is the seed pytest-randomly chose in the
    controller; ``basetemp`` the directory for the worker's ``tmp_path``, ``""`` to keep it
    beside the result. ``trees`` are the checkouts of an A/B; ``blocks`` is the socket through which
    the controller of an A/B says when to step (``launching/blocks.py``), ``""`` to step at will.
    ``evidence`` asks for an evidence pass after the timing pass; ``counts`` for the counters of a
    device trace, also where the test at the ref of an A/B does not ask for them.
    """

    nodeid: str
    args: list[str]
    argv: list[str]
    cwd: str
    rootdir: str
    sys_path: list[str]
    result_path: str
    progress_path: str
    session_index: int
    job: str
    randomly_seed: int | None = None
    basetemp: str = ""
    trees: Trees | None = None
    blocks: str = ""
    evidence: bool = False
    counts: bool = False


class CapturedSection(Record, frozen=True, kw_only=True):
    """One captured section of the worker's report: ``("Captured stdout call", text)``."""

    title: str
    text: str


class WorkerResult(Record, frozen=True, kw_only=True):
    """How the item ended inside the worker.

    ``status`` is ``passed``, ``failed``, ``skipped`` or ``xfailed`` (an imperative
    ``pytest.xfail``). ``when`` is the phase that decided it. ``exception_mro`` are the qualified
    class names of the exception, nearest first, so that ``xfail(raises=…)`` can be honoured.
    ``run`` is ``None`` unless a measurement was completed. ``not_found`` is true when the item was
    not among those collected.
    """

    status: str
    when: str = "call"
    reason: str = ""
    longrepr: str = ""
    exception_mro: list[str] = []
    sections: list[CapturedSection] = []
    duration_s: float = 0.0
    requested: bool = True
    not_found: bool = False
    run: RunRecord | None = None


class WorkerOutcome(Record, frozen=True, kw_only=True):
    """What the launcher returns for one session.

    ``result`` is ``None`` when the process died, hung or never got to the item; ``failure`` then is
    the whole explanation (exit status, last step, stacks of all threads). ``came_to`` is the last
    phase of the measurement (``"evidence pass"``, ``"done"`` …), empty where no worker was started.
    """

    result: WorkerResult | None
    failure: str = ""
    came_to: str = ""
    exit_status: int | None = None
    log_tail: str = ""
    wall_s: float = 0.0
