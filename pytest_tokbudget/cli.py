"""The ``tokbudget`` command: looks at what runs and refreshes left behind."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from . import __version__
from .errors import TokbudgetError, UnreadableError

NARROWEST, WIDEST = 40, 100
EXIT_USAGE = 2

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 2 for wrong arguments and files that cannot be shown."""
    parser = _parser()
    options, others = parser.parse_known_args(argv)
    if others and not hasattr(options, "pytest_args"):
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    options.pytest_args = others
    color = _wants_color(no_color=options.no_color)
    width = options.width or _terminal_width()
    try:
        text = options.text(options, width, color)
    except TokbudgetError as error:
        sys.stderr.write(f"tokbudget: {error}\n")
        return EXIT_USAGE
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has seen enough; the interpreter must not flush again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tokbudget", description="Look at what throughput tests measured."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in (_add_show, _add_diff, _add_history, _add_calibrate):
        command = add(commands)
        command.add_argument(
            "--width", type=_width, metavar="N", help="columns (default: the terminal's)"
        )
        command.add_argument("--no-color", action="store_true", help="plain text, always")
    return parser


def _add_show(commands: Commands) -> argparse.ArgumentParser:
    show = commands.add_parser(
        "show",
        help="show the last run, or a stored baseline",
        description="Show the result of a run (run.json) or a stored baseline.",
    )
    show.add_argument(
        "path",
        nargs="?",
        type=Path,
        default=Path(".tokbudget"),
        metavar="FILE_OR_DIR",
        help="a run.json, a baseline, or a directory with a run.json (default: .tokbudget)",
    )
    show.set_defaults(text=_shown)
    return show


def _add_diff(commands: Commands) -> argparse.ArgumentParser:
    diff = commands.add_parser(
        "diff",
        help="compare the evidence of two runs or baselines",
        description="Compare the evidence of A with that of B: a run.json, a run record under "
        ".tokbudget/runs/, or a stored baseline, each.",
    )
    diff.add_argument("then", type=Path, metavar="A", help="the file to compare with")
    diff.add_argument("now", type=Path, metavar="B", help="the file to compare")
    diff.add_argument("--test", metavar="NODEID", help="the test, where a run.json has several")
    diff.set_defaults(text=_diff)
    return diff


def _add_history(commands: Commands) -> argparse.ArgumentParser:
    history = commands.add_parser(
        "history",
        help="show the sessions of each test over time",
        description="Show the sessions of each test over time, from every committed version of "
        "its baseline and from the run records: changes of level, and how far all refreshes "
        "together have moved the anchor.",
    )
    history.add_argument("nodeid", nargs="?", metavar="NODEID", help="one test only")
    history.add_argument(
        "--baselines",
        type=Path,
        default=Path("baselines"),
        metavar="DIR",
        help="default: baselines",
    )
    history.add_argument(
        "--report", type=Path, default=Path(".tokbudget"), metavar="DIR", help="default: .tokbudget"
    )
    history.set_defaults(text=_history)
    return history


def _add_calibrate(commands: Commands) -> argparse.ArgumentParser:
    from .cli_calibrate import add_arguments

    command = commands.add_parser(
        "calibrate",
        help="measure unchanged code: the noise here, and the smallest tolerance it allows",
        description="Measure tests again and again, without judging: how noisy this workload is "
        "here within and between jobs, and the smallest tolerance that a baseline or an A/B can "
        "hold with it. Whatever is none of the options below goes to pytest: a test, a file, -k …",
        usage="tokbudget calibrate [--jobs J] [--sessions N] [--report DIR] [PYTEST_ARGS ...]",
        allow_abbrev=False,
    )
    add_arguments(command)
    command.set_defaults(text=_calibrate, pytest_args=[])
    return command


def _width(text: str) -> int:
    if not text.isdecimal() or int(text) < NARROWEST:
        raise argparse.ArgumentTypeError(f"expected at least {NARROWEST} columns, found {text!r}")
    return int(text)


def _wants_color(*, no_color: bool) -> bool:
    return not no_color and not os.environ.get("NO_COLOR") and sys.stdout.isatty()


def _terminal_width() -> int:
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
    return max(NARROWEST, min(columns, WIDEST))


def _shown(options: argparse.Namespace, width: int, color: bool) -> str:
    """Return the text of the file that was named. Raises ``TokbudgetError``."""
    file = _file_at(options.path)
    data = _peeked(file)
    if b'"anchor":' in data:
        return _baseline(file, width, color)
    if b'"passes":' in data:
        raise UnreadableError(
            f"{file}: a run record, one session's raw data; show takes a run.json or a baseline "
            "(compare the evidence of run records with tokbudget diff)"
        )
    return _run(file, width, color)


def _file_at(path: Path) -> Path:
    if not path.is_dir():
        return path
    for candidate in (path / "run.json", path / ".tokbudget" / "run.json"):
        if candidate.is_file():
            return candidate
    raise UnreadableError(
        f"{path}: expected a run.json in this directory or in its .tokbudget/, found none; "
        "measure first (pytest --tokbudget), or name a file"
    )


def _peeked(file: Path) -> bytes:
    """What ``file`` holds, to tell its kind, truncated or not; the loader says what is wrong."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _run(file: Path, width: int, color: bool) -> str:
    from .reporting.terminal import family_line, render
    from .storing.artifacts import load_run_json

    run = load_run_json(file)
    encoding = _encoding()
    sections = [
        render(one, run.machine, width=width, color=color, encoding=encoding) for one in run.tests
    ]
    return "\n\n".join(
        text for text in (*sections, family_line(run.tests, encoding=encoding)) if text
    )


def _baseline(file: Path, width: int, color: bool) -> str:
    from .analysis.baseline_figures import baseline_figures
    from .records.baseline import Baseline
    from .reporting.baseline_text import render_baseline
    from .storing.codec import load

    baseline = load(
        file,
        Baseline,
        what_next="restore it from git, or delete it and refresh (--tokbudget-refresh)",
    )
    figures = baseline_figures(baseline)
    return render_baseline(baseline, figures, width=width, color=color, encoding=_encoding())


def _diff(options: argparse.Namespace, width: int, color: bool) -> str:
    from .analysis.evidence_diff import evidence_diff
    from .reporting.diff_text import render_diff
    from .storing.compared import load_side

    old, new = (load_side(_file_at(path), options.test) for path in (options.then, options.now))
    return render_diff(
        evidence_diff(old.evidence, new.evidence),
        *(f"{one.path} ({one.title}), {one.nodeid}" for one in (old, new)),
        width=width,
        color=color,
        encoding=_encoding(),
    )


def _history(options: argparse.Namespace, width: int, color: bool) -> str:
    from .cli_history import history

    return history(
        options.nodeid,
        options.baselines,
        options.report,
        width=width,
        color=color,
        encoding=_encoding(),
    )


def _calibrate(options: argparse.Namespace, width: int, color: bool) -> str:
    from .cli_calibrate import calibration

    return calibration(options, width=width, color=color, encoding=_encoding())


def _encoding() -> str:
    return sys.stdout.encoding or "utf-8"
