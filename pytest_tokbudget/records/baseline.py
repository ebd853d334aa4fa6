"""What is stored of accepted sessions."""

from __future__ import annotations

from .base import SCHEMA, Record
from .counters import ExactCounters
from .evidence import Evidence
from .machine import MachineClass, Software
from .workload import Workload


class StoredSession(Record, frozen=True, kw_only=True):
    """One accepted session. ``job`` tells invocations apart; ``unix_s`` is when it was measured.

    ``tokens`` are those of the gate's kind in the timing pass, ``seconds`` its length with what it
    was held for, so that ``tok_s`` is never below their ratio.
    ``canaries_ms`` are median milliseconds by canary (``analysis.canaries.medians_ms``).
    ``usable_cores``, ``core_wait_share`` and ``steal_share`` are those of ``Conditions``;
    ``power_capped_share`` is the largest share of samples in which one of the GPUs was held back by
    its power limit. ``None`` where it was not read. ``counters`` are its exact ones; they and
    ``tokens`` are ``None`` in older baselines.
    """

    tok_s: float
    tokens: int | None = None
    steps: int
    seconds: float
    warmup_steps: int
    warmup_seconds: float
    job: str
    commit: str | None
    host_hash: str
    unix_s: int
    software: Software
    canaries_ms: dict[str, float] = {}
    usable_cores: int | None = None
    core_wait_share: float | None = None
    steal_share: float | None = None
    power_capped_share: float | None = None
    counters: ExactCounters | None = None


class Spread(Record, frozen=True, kw_only=True):
    """What earlier refreshes taught about the spread: a variance of log tok/s, its degrees of
    freedom and the number of jobs it rests on."""

    variance: float
    degrees: float
    jobs: int = 1


class RefreshEntry(Record, frozen=True, kw_only=True):
    """One line of the refresh log. Rates in tok/s; ``change_ci_pct`` is the 99 % interval."""

    date: str
    commit: str | None
    reason: str
    old_tok_s: float | None = None
    new_tok_s: float
    change_pct: float | None = None
    change_ci_pct: tuple[float, float] | None = None


class Baseline(Record, frozen=True, kw_only=True):
    """Accepted sessions of one workload on one machine class.

    ``anchor`` are the sessions of the last refresh and alone give the mean; ``appended`` are fit
    sessions of accepted commits since, which only widen what is known of the spread; ``learned`` is
    what earlier anchors taught about the spread. ``reference`` is the evidence of one anchor
    session.
    """

    schema: int = SCHEMA
    workload: Workload
    machine_class: MachineClass
    token_kind: str
    anchor: list[StoredSession]
    appended: list[StoredSession] = []
    learned: Spread | None = None
    reference: Evidence | None = None
    log: list[RefreshEntry]
