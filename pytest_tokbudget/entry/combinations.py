"""Options that do not go together, or not with other people's plugins."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..errors import UsageError

if TYPE_CHECKING:
    from .settings import Settings

REFRESH_SESSIONS = 5
FEWEST_REFRESH_SESSIONS = 3


def refuse(settings: Settings, config: pytest.Config) -> None:
    """Refuse combinations that would move or lose what they should not. Raises UsageError."""
    if settings.against is not None:
        _refuse_others("--tokbudget-against", settings, {})
    if settings.measure is not None:
        also = {
            "--tokbudget-against": settings.against is not None,
            "--tokbudget-sessions": settings.sessions_from_option,
        }
        _refuse_others("--tokbudget-measure", settings, also)
    if settings.refresh is not None:
        _refuse_reason(settings.refresh, Path(config.invocation_params.dir))
        if settings.append:
            raise UsageError("--tokbudget-refresh and --tokbudget-append exclude each other")
        if settings.missing == "record":
            raise UsageError(
                "--tokbudget-refresh and --tokbudget-missing=record exclude each other"
            )
        _refuse_few(settings)
    if settings.inprocess and (settings.records or settings.append):
        raise UsageError(
            "an in-process run (--tokbudget-inprocess, --pdb, --trace) is never stored: "
            "leave out --tokbudget-refresh and --tokbudget-append"
        )
    if settings.native:
        _refuse_native(settings, config)
    if settings.missing == "record":
        _refuse_few(settings)
        if os.environ.get("CI") and not settings.baselines_named:
            raise UsageError(
                "--tokbudget-missing=record under CI would write into a checkout that is thrown "
                "away; name a directory that is kept: --tokbudget-baselines DIR"
            )
    _refuse_plugins(config)


def _refuse_others(name: str, settings: Settings, others: dict[str, bool]) -> None:
    """Refuse what would read or write a baseline, beside an option that does neither."""
    others = {
        **others,
        "--tokbudget-refresh": settings.refresh is not None,
        "--tokbudget-append": settings.append,
        "--tokbudget-missing=record": settings.missing == "record",
        "an in-process run (--tokbudget-inprocess, --pdb, --trace)": settings.inprocess,
    }
    for other, given in others.items():
        if given:
            raise UsageError(f"{name} and {other} exclude each other")


def _refuse_native(settings: Settings, config: pytest.Config) -> None:
    """Native stacks are a part of the evidence; refuse to ask for them where none is taken."""
    if settings.evidence == "never":
        raise UsageError(
            "--tokbudget-native and --tokbudget-evidence never exclude each other (either may "
            "stand in the ini file): native stacks are taken in the session that gives evidence; "
            "leave one out, or add --no-tokbudget-native"
        )
    if settings.inprocess and config.getoption("tokbudget_native"):
        raise UsageError(
            "--tokbudget-native: an in-process run (--tokbudget-inprocess, --pdb, --trace) takes "
            "no evidence; leave one out"
        )


def _refuse_few(settings: Settings) -> None:
    sessions = settings.sessions
    if settings.sessions_from_option and sessions and sessions[0] < FEWEST_REFRESH_SESSIONS:
        raise UsageError(
            f"--tokbudget-sessions {sessions[0]}: a baseline needs at least "
            f"{FEWEST_REFRESH_SESSIONS} sessions (default {REFRESH_SESSIONS})"
        )


def _refuse_reason(reason: str, cwd: Path) -> None:
    name = f"--tokbudget-refresh {reason!r}"
    if not reason.strip():
        raise UsageError(f'{name}: say why the baseline moves, like "fused AdamW"')
    named = "::" in reason or reason.endswith(("/", ".py"))
    if named or (cwd / reason).exists():
        raise UsageError(
            f"{name}: this names a test or a path, not a reason; "
            f'write --tokbudget-refresh "why" {reason}'
        )


def _workers_of(spec: str) -> int:
    """How many workers a ``--tx`` of xdist means: ``3*popen`` is three."""
    times, star, _ = spec.partition("*")
    return int(times) if star and times.isdecimal() else 1


def _refuse_plugins(config: pytest.Config) -> None:
    """Workers of xdist would share the device; a rerun launders a regression."""
    processes = config.getoption("numprocesses", None)
    distributed = sum(_workers_of(one) for one in config.getoption("tx", None) or ())
    if max(int(processes or 0), distributed) > 1:
        raise UsageError(
            f"-n {processes or distributed}: with --tokbudget the tests would share the device "
            "with each other; use -n 0"
        )
    for option in ("reruns", "force_reruns"):
        reruns = config.getoption(option, None)
        if reruns:
            flag = "--" + option.replace("_", "-")
            raise UsageError(
                f"{flag} {reruns}: a rerun of a measured test would launder a regression; "
                f"leave {flag} out with --tokbudget (measured tests are never rerun)"
            )
    if config.getoption("reruns_mode", None) == "append":
        raise UsageError("--reruns-mode append: measured tests are never rerun; leave it out")
