"""All options, parsed once into a frozen ``Settings``. Nothing else looks at ``config``."""

from __future__ import annotations

import os
import re
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ..analysis.quantities import parse_share
from ..errors import UsageError
from .combinations import refuse
from .options import OPTIONS, Option, ini_flag

DEFAULT_STEPS = 200
DEFAULT_TOLERANCE = 0.05
DEFAULT_SESSIONS = (1, 3)
DEFAULT_ORIGIN = "default"


@dataclass(frozen=True)
class Settings:
    """What the user asked for, checked.

    ``sessions`` is ``(N, MAX)`` or ``None`` where neither option nor ini says; ``baselines_named``
    is whether the directory was given explicitly; ``job`` names this invocation.
    """

    rootdir: Path
    args: tuple[str, ...]
    refresh: str | None
    append: bool
    allow_dirty: bool
    inprocess: bool
    baselines: Path
    baselines_named: bool
    report: Path
    sessions: tuple[int, int] | None
    sessions_from_option: bool
    missing: str
    inconclusive: str
    pool: str
    worker_args: tuple[str, ...]
    steps: int
    warmup_steps: int | None
    tolerance: float
    evidence: str = "always"
    native: bool = False
    counters: str = "show"
    against: str | None = None
    against_build: str = ""
    measure: int | None = None
    max_time_s: float = 600.0
    job: str = field(default_factory=lambda: uuid.uuid4().hex[:12])

    @property
    def records(self) -> bool:
        """Whether this invocation moves anchors."""
        return self.refresh is not None


def parse_sessions(text: object, origin: str) -> tuple[int, int]:
    """``"N"`` or ``"N:MAX"`` (or the int N) → ``(N, MAX)``; raises UsageError naming ``origin``."""
    match = re.fullmatch(r"([1-9]\d{0,3})(?::([1-9]\d{0,3}))?", str(text).strip())
    if isinstance(text, bool) or match is None:
        raise UsageError(
            f"{origin}: {text!r} is not a number of sessions; "
            'write N or N:MAX, like "3" or "1:3" (both at least 1)'
        )
    least = int(match[1])
    most = int(match[2]) if match[2] else least
    if most < least:
        raise UsageError(f"{origin}: in {text!r} MAX is below N; write N:MAX with N <= MAX")
    return least, most


def parse_count(value: object, origin: str, *, least: int = 1) -> int:
    """A whole number of steps, at least ``least``; raises UsageError naming ``origin``."""
    text = str(value).strip()
    if isinstance(value, (bool, float)) or not re.fullmatch(r"-?\d+", text) or int(text) < least:
        raise UsageError(f"{origin}: {value!r} is not a whole number of at least {least}")
    return int(text)


def parse_time(text: str | None, origin: str) -> float:
    """``"10min"``, ``"90 s"`` or ``"1h"`` in seconds; raises UsageError naming ``origin``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|h)", (text or "").strip())
    if match is None or float(match[1]) == 0:
        raise UsageError(f'{origin}: {text!r} is not a time; write it like "90s", "10min" or "1h"')
    return float(match[1]) * {"s": 1, "min": 60, "h": 3600}[match[2]]


def _given(config: pytest.Config, option: Option) -> list[tuple[str, str]]:
    """Each value given for an option and where it came from, command line before ini."""
    flag = None if option.ini_only else config.getoption(option.name)
    ini = config.getini(option.name)
    found = [] if flag is None else [(str(flag), option.flag)]
    return found if ini is None or ini == [] else [*found, (str(ini), f"ini option {option.name}")]


def _text(config: pytest.Config, option: Option) -> tuple[str | None, str]:
    """The value that holds and where it came from, command line before ini before default."""
    return next(iter(_given(config, option)), (option.default, DEFAULT_ORIGIN))


def _directory(config: pytest.Config, option: Option) -> Path:
    """An option's path is relative to where it was typed, an ini's or default to the rootdir."""
    value, origin = _text(config, option)
    if not value:
        raise UsageError(f"{origin}: an empty path; name a directory")
    base = config.invocation_params.dir if origin == option.flag else config.rootpath
    path = Path(base) / Path(value).expanduser()
    if origin == DEFAULT_ORIGIN:
        origin = f"{option.flag} (by default)"
    if path.exists() and not path.is_dir():
        raise UsageError(f"{origin}: {value!r} is a file; name a directory")
    return path


def _choice(config: pytest.Config, option: Option) -> str:
    """A wrong ini value is refused also where an option overrides it, as those below are."""
    assert option.choices is not None
    assert option.default is not None
    given = _given(config, option)
    for value, origin in given:
        if value not in option.choices:
            raise UsageError(f"{origin}: {value!r} is not one of {', '.join(option.choices)}")
    return given[0][0] if given else option.default


def _sessions(config: pytest.Config, option: Option) -> tuple[int, int] | None:
    found = [parse_sessions(*one) for one in _given(config, option)]
    return found[0] if found else None


def _max_time_s(config: pytest.Config, option: Option) -> float:
    default = (option.default or "", DEFAULT_ORIGIN)
    found = [parse_time(*one) for one in (*_given(config, option), default)]
    return found[0]


def read_settings(config: pytest.Config) -> Settings:
    """Parse and check every option. Raises UsageError naming option and value."""
    named = {option.name: option for option in OPTIONS}
    values = {name: _text(config, option) for name, option in named.items()}
    pool = values["tokbudget_machine"][0] or os.environ.get("TOKBUDGET_MACHINE", "")
    settings = Settings(
        rootdir=Path(config.rootpath),
        args=tuple(str(arg) for arg in config.invocation_params.args),
        refresh=config.getoption("tokbudget_refresh"),
        append=bool(config.getoption("tokbudget_append")),
        allow_dirty=bool(config.getoption("tokbudget_allow_dirty")),
        inprocess=_is_inprocess(config),
        baselines=_directory(config, named["tokbudget_baselines"]),
        baselines_named=values["tokbudget_baselines"][1] != DEFAULT_ORIGIN,
        report=_directory(config, named["tokbudget_report"]),
        sessions=_sessions(config, named["tokbudget_sessions"]),
        sessions_from_option=config.getoption("tokbudget_sessions") is not None,
        missing=_choice(config, named["tokbudget_missing"]),
        inconclusive=_choice(config, named["tokbudget_inconclusive"]),
        evidence=_choice(config, named["tokbudget_evidence"]),
        native=_is_native(config),
        counters=_choice(config, named["tokbudget_counters"]),
        pool=_pool(pool),
        worker_args=tuple(config.getini("tokbudget_worker_args") or ()),
        steps=_count_or(values["tokbudget_steps"], DEFAULT_STEPS),
        warmup_steps=_warmup(values["tokbudget_warmup"]),
        tolerance=_tolerance(values["tokbudget_tolerance"]),
        against=config.getoption("tokbudget_against"),
        against_build=values["tokbudget_against_build"][0] or "",
        measure=_measure(config),
        max_time_s=_max_time_s(config, named["tokbudget_max_time"]),
    )
    refuse(settings, config)
    return settings


def _pool(name: str) -> str:
    if name and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise UsageError(
            f"tokbudget_machine: {name!r} is not a pool name; use letters, digits, '.', '_', '-'"
        )
    return name


def _count_or(value: tuple[str | None, str], default: int) -> int:
    return default if value[0] is None else parse_count(value[0], value[1])


def _warmup(value: tuple[str | None, str]) -> int | None:
    return None if value[0] is None else parse_count(value[0], value[1], least=0)


def _measure(config: pytest.Config) -> int | None:
    given = config.getoption("tokbudget_measure")
    return None if given is None else parse_count(given, "--tokbudget-measure")


def _tolerance(value: tuple[str | None, str]) -> float:
    text, origin = value
    if text is None:
        return DEFAULT_TOLERANCE
    try:
        return parse_share(text)
    except UsageError as error:
        raise UsageError(f"{origin}: {error}") from None


def _is_native(config: pytest.Config) -> bool:
    flag, ini = config.getoption("tokbudget_native"), ini_flag(config, "tokbudget_native")
    return ini if flag is None else bool(flag)


def _is_inprocess(config: pytest.Config) -> bool:
    """``--pdb`` and ``--trace`` need the body in this process."""
    return bool(
        config.getoption("tokbudget_inprocess")
        or config.getoption("usepdb", False)
        or config.getoption("trace", False)
    )
