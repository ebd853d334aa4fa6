"""What a run leaves behind for people and programs: ``run.json``, run records, candidates."""

from __future__ import annotations

import contextlib
import datetime as dt
import re
import secrets
from pathlib import Path

from ..errors import StoreError, UnreadableError
from ..records.baseline import Baseline
from ..records.result import RunResult
from ..records.run import RunRecord
from .atomic import check_writable, write_atomic
from .codec import R, encode_baseline, encode_compact, encode_pretty, load
from .slugs import slug
from .workload_identity import file_name

OWN_NAME = ".tokbudget"

MOST_RUN_RECORDS = 200
"""Run records kept; the oldest go first."""

_RUN_NAME = re.compile(r"\d{8}T\d{6}\.\d{6}Z-[a-z0-9_-]+-[0-9a-f]{8}\.json")


def load_run_json(path: Path) -> RunResult:
    """Read a ``run.json``; raises UnreadableError or NewerSchemaError."""
    return _load(path, RunResult)


def load_run_record(path: Path) -> RunRecord:
    """Read one run record; raises UnreadableError or NewerSchemaError."""
    return _load(path, RunRecord)


def _load(path: Path, kind: type[R]) -> R:
    what_next = "measure again (pytest --tokbudget)"
    try:
        return load(path, kind, what_next=what_next)
    except FileNotFoundError:
        raise UnreadableError(f"{path}: there is no such file; {what_next}") from None


class ReportDirectory:
    """The artifacts of runs, ``.tokbudget/`` by default, made when first written to.

    It gets a ``.gitignore`` that ignores everything in it, unless it is a directory of another name
    that holds other files already: those are not ours to hide. All methods raise StoreError.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def run_json(self) -> Path:
        """Where the result of the last run stands."""
        return self._root / "run.json"

    def check_writable(self) -> None:
        """Raise StoreError, naming the directory, if the artifacts could not be written."""
        check_writable(self._root)

    def forget_run_json(self) -> None:
        """Take the result of an earlier run away; one that cannot be is overwritten later."""
        with contextlib.suppress(OSError):
            self.run_json.unlink(missing_ok=True)

    def write_run_json(self, result: RunResult) -> Path:
        """Write the machine-readable result of this run."""
        return self._write(self.run_json, encode_pretty(result))

    def write_run_record(self, run: RunRecord) -> Path:
        """Keep one session whole, and drop the oldest beyond ``MOST_RUN_RECORDS``."""
        ended_us = (run.timing.end_ns + run.unix_offset_ns) // 1000
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
        moment += dt.timedelta(microseconds=ended_us)
        name = f"{moment:%Y%m%dT%H%M%S.%fZ}-{slug(run.workload.identity)}-{secrets.token_hex(4)}"
        path = self._write(self._runs / f"{name}.json", encode_compact(run))
        self._prune()
        return path

    def write_candidate(self, baseline: Baseline) -> Path:
        """Leave what would be a baseline, in the layout of a baseline directory."""
        place = self._root / "candidates" / baseline.machine_class.slug
        return self._write(place / file_name(baseline.workload), encode_baseline(baseline))

    def latest(self) -> Path | None:
        """The newest run record, None where there is none."""
        records = self.records()
        return records[-1] if records else None

    @property
    def _runs(self) -> Path:
        return self._root / "runs"

    def _write(self, path: Path, data: bytes) -> Path:
        self._make_root()
        write_atomic(path, data)
        return path

    def _make_root(self) -> None:
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            ignore = self._root / ".gitignore"
            ours = self._root.name == OWN_NAME or not any(self._root.iterdir())
            if ours and not ignore.exists():
                write_atomic(ignore, b"# Made by pytest-tokbudget.\n*\n")
        except OSError as error:
            raise StoreError(
                f"{self._root}: cannot be made or read ({error.strerror or error}); "
                "name another directory (--tokbudget-report DIR)"
            ) from error

    def records(self) -> list[Path]:
        """Our own run records, oldest first; names begin with the time."""
        return sorted(path for path in self._runs.glob("*.json") if _RUN_NAME.fullmatch(path.name))

    def _prune(self) -> None:
        for path in self.records()[:-MOST_RUN_RECORDS]:
            with contextlib.suppress(OSError):
                path.unlink()
