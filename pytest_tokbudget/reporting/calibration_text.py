"""The noise floor of a workload, for people: figures, a picture of the sessions, tolerances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..analysis.calibration import FEWEST_JOBS, MOST_SESSIONS, Calibration, Steps
from ..analysis.smallest_tolerance import ANCHOR_SESSIONS, SETTLED_APPENDED, Held
from .canvas import drawn, unbroken
from .figures import count, fitting, percent, rate

SMALLEST_SPAN = 0.01
"""Share of the rate that the picture spans at least: noise of 0.1 % shall look like what it is."""

_LABEL_WIDTH = 11
_JOB_WIDTH = 9
_NONE = "none"


def render_calibration(
    found: Calibration, *, width: int = 80, color: bool = False, encoding: str = "utf-8"
) -> str:
    """Return ``found`` as text: no line wider than ``width``, no newline at the end."""
    parts: list[RenderableType] = [
        Text.assemble(("CALIBRATION", "bold cyan"), "  ", found.nodeid),
        Text(""),
        *(Text(line) for line in _picture(found.jobs, width)),
        Text(""),
        _rows(found),
        Text(""),
        Text("smallest tolerance that holds, and the time of a verdict", "bold"),
        _tolerances(found),
        Padding(Text(unbroken(_advice(found))), (0, 0, 0, 2)),
    ]
    text = "\n".join(drawn(part, width=width, color=color) for part in parts)
    return fitting(text, encoding)


def _picture(jobs: Sequence[Sequence[float]], width: int) -> Iterator[str]:
    """One line a job: how many sessions fell into each column, ``|`` at the median of all."""
    everything = [tok_s for job in jobs for tok_s in job]
    middle = median(everything)
    half = max(*(abs(one - middle) for one in everything), middle * SMALLEST_SPAN / 2)
    columns = width - _JOB_WIDTH - 2
    low = middle - half

    def column(tok_s: float) -> int:
        return min(int((tok_s - low) / (2 * half) * columns), columns - 1)

    for number, job in enumerate(jobs, start=1):
        hits = [0] * columns
        for tok_s in job:
            hits[column(tok_s)] += 1
        cells = ["o" if one == 1 else str(min(one, 9)) if one else "." for one in hits]
        if not hits[column(middle)]:
            cells[column(middle)] = "|"
        yield f"  job {number:<{_JOB_WIDTH - 6}}{''.join(cells)}"
    ends = f"{rate(low)} tok/s", f"{rate(low + 2 * half)}"
    mark = f"{rate(middle)} median"
    between = columns - len(ends[0]) - len(ends[1])
    if len(mark) + 2 <= between:
        yield " " * (_JOB_WIDTH) + ends[0] + mark.center(between) + ends[1]
    else:
        yield f"  from {ends[0]} to {ends[1]}"


def _rows(found: Calibration) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True, style="dim", width=_LABEL_WIDTH)
    table.add_column(overflow="fold")
    for label, value in _figures(found):
        table.add_row(f"  {label}", Text(unbroken(value)))
    return table


def _figures(found: Calibration) -> Iterator[tuple[str, str]]:
    measured = sum(map(len, found.jobs))
    left_out = f"; {found.unsteady} never became steady" if found.unsteady else ""
    yield "measured", f"{count(measured, 'session')} in {count(len(found.jobs), 'job')}{left_out}"
    low, high = (percent(100 * one) for one in found.spread_ci)
    yield "spread", f"{percent(100 * found.spread)} within a job (95 % interval {low} to {high})"
    yield "jobs", _between(found)
    yield "canary", _canary(found)
    if found.steps is not None:
        yield "steps", _steps(found.steps)
        yield "drift", _drift(found.steps, measured)
    least, most = found.warmup_steps
    span = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    yield "warm-up", f"{span} steps, {found.warmup_s:.3g} s (median)"
    yield "cost", f"{found.session_s:.3g} s a session, start-up and all"


def _steps(steps: Steps) -> str:
    return (
        f"autocorrelation of neighbours {steps.neighbours:.2f}: {steps.steps:,} steps are worth "
        f"{steps.independent:,.0f} independent ones"
    )


def _drift(steps: Steps, sessions: int) -> str:
    return (
        f"step time {steps.drift_pct:+.2g} % over a session (median); in {steps.drifting} of "
        f"{count(sessions, 'session')} more than its own error"
    )


def _between(found: Calibration) -> str:
    if found.between is None:
        return (
            f"one job tells nothing of others; {found.assumed_between:g} times the variance within "
            "is assumed (--jobs 3 would measure it)"
        )
    text = f"variance between jobs {found.between:.2g} times that within"
    if len(found.jobs) < FEWEST_JOBS:
        text += f" (of {len(found.jobs)} jobs, a guess: {found.assumed_between:g} is assumed)"
    return text


def _canary(found: Calibration) -> str:
    if found.canary is None:
        return "none that every session ran"
    if found.canary_kept is None:
        return f"{found.canary}: no spread to explain"
    kept = 100 * found.canary_kept**0.5
    if kept >= 200:
        return f"dividing by {found.canary} makes the spread {kept / 100:.3g} times as wide"
    verdict = "helps" if kept < 90 else "does not help"
    return f"dividing by {found.canary} leaves {kept:.0f} % of the spread: it {verdict}"


def _tolerances(found: Calibration) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    for _ in range(MOST_SESSIONS):
        table.add_column(justify="right", no_wrap=True)
    heads = [count(number, "session") for number in range(1, MOST_SESSIONS + 1)]
    table.add_row("  baseline", *heads, style="dim")
    for label, held in (
        (f"of {ANCHOR_SESSIONS} sessions, one job", found.first),
        (f"settled by {SETTLED_APPENDED} more jobs", found.settled),
    ):
        table.add_row(f"  {label}", *(_cell(one, found.session_s) for one in held))
    # A pair is a session of either side.
    table.add_row("  none: A/B of up to 12 pairs", _cell(found.pairs, 2 * found.session_s))
    return table


def _cell(held: Held | None, session_s: float) -> str:
    if held is None:
        return _NONE
    seconds = held.mean_used * session_s
    time = f"{seconds:.0f} s" if seconds < 59.5 else f"{seconds / 60:.3g} min"
    return f"{percent(100 * held.tolerance)}, {time}"


def _advice(found: Calibration) -> str:
    if found.tolerance is None:
        return "This test has no tolerance (tolerance=None)."
    text = f"This test's tolerance of {percent(100 * found.tolerance)}"
    ways = (
        ("a first baseline", found.first),
        ("a settled baseline (--tokbudget-append on accepted commits)", found.settled),
        ("an A/B (--tokbudget-against)", [found.pairs]),
    )
    for name, held in ways:
        fits = [one is not None and one.tolerance <= found.tolerance for one in held]
        if any(fits):
            sessions = f" and {count(fits.index(True) + 1, 'session')}" if len(held) > 1 else ""
            return f"{text} holds from {name}{sessions} on."
    return f"{text} holds in no way here: widen it, or quieten the machine."
