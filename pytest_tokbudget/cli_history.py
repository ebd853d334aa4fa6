"""``tokbudget history``: the sessions of each workload over time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .errors import LaunchError, UnreadableError

if TYPE_CHECKING:
    from .storing.history import HistoryReader


def history(
    nodeid: str | None, baselines: Path, report: Path, *, width: int, color: bool, encoding: str
) -> str:
    """Return the text of ``tokbudget history``.

    Raises UnreadableError where nothing is found, and MissingLibraryError.
    """
    from rich.text import Text

    from .analysis.trend import trend_of
    from .reporting.canvas import drawn
    from .reporting.history_text import render_history
    from .storing.history import HistoryReader, chosen

    reader = HistoryReader()
    notes = _add_versions(reader, baselines)
    reader.add_baselines(baselines)
    reader.add_report(report)
    found = reader.histories()
    if not found:
        raise UnreadableError(
            f"no session of any workload in {baselines} or {report}: measure first "
            "(pytest --tokbudget), or name the directories (--baselines, --report)"
        )
    wanted = found if nodeid is None else chosen(found, nodeid)
    if not wanted:
        known = ", ".join(dict.fromkeys(one.nodeid for one in found))
        raise UnreadableError(f"no session of {nodeid!r} was found; there are some of: {known}")
    sections = [
        render_history(
            one, trend_of(one.sessions, one.log), width=width, color=color, encoding=encoding
        )
        for one in wanted
    ]
    said = [
        drawn(Text(f"note: {note}"), width=width, color=False) for note in (*notes, *reader.notes)
    ]
    return "\n\n".join([*sections, *said])


def _add_versions(reader: HistoryReader, baselines: Path) -> list[str]:
    """Add what git holds; return notes on what it does not."""
    from .launching.file_versions import file_versions, is_shallow

    try:
        reader.add_versions(file_versions(baselines, ".json"))
        shallow = is_shallow(baselines)
    except LaunchError as error:
        why = "so only its files of now and the run records count"
        return [f"git gave no history of {baselines}, {why} ({error})"]
    return ["this is a shallow clone: older baselines are unknown"] if shallow else []
