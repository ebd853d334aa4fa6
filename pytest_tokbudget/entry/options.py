"""Command-line options and ini keys: the whole public list, in one table.

Imported at every pytest start, so nothing heavy is imported here.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest


class Option(NamedTuple):
    """One option that also has an ini key; ``ini_only``: the ini key alone.

    A named tuple, for making a dataclass costs every pytest start some milliseconds.
    """

    name: str
    help: str
    metavar: str | None = None
    choices: tuple[str, ...] | None = None
    default: str | None = None
    ini_only: bool = False

    @property
    def flag(self) -> str:
        """The option as typed."""
        return "--" + self.name.replace("_", "-")


OPTIONS = (
    Option(
        "tokbudget_baselines",
        "where baselines are stored (default: baselines/ under the rootdir)",
        metavar="DIR",
        default="baselines",
    ),
    Option(
        "tokbudget_sessions",
        "fresh sessions to measure, up to MAX while undecided (default: 1:3)",
        metavar="N[:MAX]",
    ),
    Option(
        "tokbudget_missing",
        "no baseline for this machine class: fail (default), record one, or skip the test",
        choices=("fail", "record", "skip"),
        default="fail",
    ),
    Option(
        "tokbudget_inconclusive",
        "noise larger than the tolerance: fail (default, exit status 75) or warn",
        choices=("fail", "warn"),
        default="fail",
    ),
    Option(
        "tokbudget_evidence",
        "when to take evidence of where the time goes: always (default), on-fail, or never",
        choices=("always", "on-fail", "never"),
        default="always",
    ),
    Option(
        "tokbudget_report",
        "where artifacts go (default: .tokbudget/ under the rootdir)",
        metavar="DIR",
        default=".tokbudget",
    ),
    Option(
        "tokbudget_max_time",
        "with --tokbudget-against: begin no further pair of a test after this (default: 10min)",
        metavar="TIME",
        default="10min",
    ),
    Option(
        "tokbudget_against_build",
        "shell command that builds extensions in a checkout of the ref",
        ini_only=True,
    ),
    Option("tokbudget_machine", "the name of a pool of equal machines", ini_only=True),
    Option("tokbudget_worker_args", "arguments added for every worker", ini_only=True),
    Option("tokbudget_steps", "steps of the timing pass (default: 200)", ini_only=True),
    Option("tokbudget_warmup", "warm-up steps (default: found)", ini_only=True),
    Option(
        "tokbudget_counters",
        "more of an exact counter than in the baseline: show (default) or fail",
        choices=("fail", "show"),
        default="show",
        ini_only=True,
    ),
    Option("tokbudget_tolerance", 'allowed slow-down, like "5%" (default)', ini_only=True),
)


def add_options(parser: pytest.Parser) -> None:
    """Declare every option and ini key. Flags default to ``None`` so that ini can answer."""
    group = parser.getgroup("tokbudget", "throughput gate")
    _add_actions(group)
    for option in OPTIONS:
        if not option.ini_only:
            group.addoption(option.flag, metavar=option.metavar, default=None, help=_shown(option))
        if option.name == "tokbudget_worker_args":
            parser.addini(option.name, option.help, type="args", default=None)
        else:
            parser.addini(option.name, option.help, type="string", default=None)
    parser.addini("tokbudget", "run the throughput tests", type="bool", default=False)
    parser.addini("tokbudget_native", "take native stacks too", type="bool", default=False)


def _add_actions(group: pytest.OptionGroup) -> None:
    """Options without a value, which have an ini key of type bool or none, and those that say what
    this one invocation does."""
    group.addoption(
        "--tokbudget",
        action="store_true",
        default=None,
        dest="tokbudget",
        help="run the throughput tests and judge them (without it they are skipped)",
    )
    group.addoption(
        "--no-tokbudget",
        action="store_false",
        default=None,
        dest="tokbudget",
        help="skip the throughput tests although the ini file enables them",
    )
    group.addoption(
        "--tokbudget-native",
        action="store_true",
        default=None,
        dest="tokbudget_native",
        help="with the evidence, a last pass of native stacks (C, C++, Rust, Cython), which pauses "
        "the process at every sample",
    )
    group.addoption(
        "--no-tokbudget-native",
        action="store_false",
        default=None,
        dest="tokbudget_native",
        help="leave that pass out although the ini file asks for it",
    )
    group.addoption(
        "--tokbudget-refresh",
        metavar="REASON",
        default=None,
        help="measure and replace the baseline's anchor; the reason is recorded",
    )
    group.addoption(
        "--tokbudget-append",
        action="store_true",
        default=None,
        help="for an accepted commit: add its sessions to the baseline's spread",
    )
    group.addoption(
        "--tokbudget-against",
        metavar="REF",
        default=None,
        help="judge against a git ref measured now, in turn with this tree, on this machine",
    )
    group.addoption(
        "--tokbudget-measure",
        metavar="N",
        default=None,
        help="measure N fresh sessions and judge nothing (what `tokbudget calibrate` runs)",
    )
    group.addoption(
        "--tokbudget-allow-dirty",
        action="store_true",
        help="let a refresh or append go on with uncommitted changes in the measured code",
    )
    group.addoption(
        "--tokbudget-inprocess",
        action="store_true",
        help="run the body in the pytest process: shown, never stored nor compared",
    )


def _shown(option: Option) -> str:
    if option.choices is None:
        return option.help
    return f"{option.help} [{'|'.join(option.choices)}]"


def is_enabled(config: pytest.Config) -> bool:
    """Whether the throughput tests run: ``--tokbudget``, what implies it, or ini."""
    flag = config.getoption("tokbudget")
    if flag is not None:
        return bool(flag)
    implied_by = ("refresh", "append", "against", "measure")
    if any(config.getoption(f"tokbudget_{name}") is not None for name in implied_by):
        return True
    return ini_flag(config, "tokbudget")


def ini_flag(config: pytest.Config, name: str) -> bool:
    """An ini key of type bool. Raises pytest.UsageError naming it for a value that is none."""
    try:
        return bool(config.getini(name))
    except (ValueError, TypeError, pytest.UsageError) as error:  # it names the value alone
        raise pytest.UsageError(f"ini option {name}: {error}; write true or false") from None
