"""How a worker gets its spec, and which files a session leaves beside its result."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..errors import LaunchError
from ..records.launch import WorkerResult, WorkerSpec

SPEC_VARIABLE = "TOKBUDGET_WORKER_SPEC"


@dataclass(frozen=True)
class SessionFiles:
    """The files of one session, named after ``WorkerSpec.result_path``.

    ``log`` takes what the worker's processes write to stdout and stderr, ``terminal`` what pytest's
    reporter in the worker would have shown, ``stacks`` the stacks a dying worker leaves, ``forked``
    what the forked children of a worker of an A/B note.
    """

    result: Path

    @classmethod
    def of(cls, spec: WorkerSpec) -> SessionFiles:
        """The files of the session that ``spec`` describes."""
        return cls(Path(spec.result_path))

    def _beside(self, suffix: str) -> Path:
        return self.result.with_name(self.result.name + suffix)

    @property
    def spec(self) -> Path:
        """The spec, as JSON."""
        return self._beside(".spec")

    @property
    def log(self) -> Path:
        """Standard output and error of the worker and its children."""
        return self._beside(".log")

    @property
    def terminal(self) -> Path:
        """What pytest's own reporter wrote in the worker."""
        return self._beside(".terminal")

    @property
    def stacks(self) -> Path:
        """The stacks of all threads, written by a worker that dies by a signal."""
        return self._beside(".stacks")

    @property
    def forked(self) -> Path:
        """What forked children imported, as JSON lines."""
        return self._beside(".forked")

    @property
    def basetemp(self) -> Path:
        """The worker's ``tmp_path`` root where the spec names none."""
        return self._beside(".tmp")

    def forget(self) -> None:
        """Remove what an earlier session left here: it must never pass for this one's."""
        for path in (self.result, self.log, self.terminal, self.stacks, self.forked):
            path.unlink(missing_ok=True)


def write_spec(spec: WorkerSpec) -> Path:
    """Write ``spec`` where its worker will look; return the path. Raises OSError."""
    path = SessionFiles.of(spec).spec
    path.write_bytes(msgspec.json.encode(spec))
    return path


def take_spec(environ: MutableMapping[str, str] = os.environ) -> WorkerSpec:
    """Read the spec that ``environ`` names and forget the name: whatever this process starts is no
    worker. Raises LaunchError when there is none, or it cannot be read.
    """
    path = environ.pop(SPEC_VARIABLE, None)
    if path is None:
        raise LaunchError(
            f"the environment variable {SPEC_VARIABLE} is not set: this module is started by "
            "pytest --tokbudget, for one session, and is of no use by itself"
        )
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=WorkerSpec)
    except (OSError, msgspec.MsgspecError) as error:
        raise LaunchError(f"the worker's spec {path} cannot be read: {error}") from error


def write_result(spec: WorkerSpec, result: WorkerResult) -> None:
    """Leave ``result`` for the controller; whole or not at all. Raises OSError."""
    path = SessionFiles.of(spec).result
    whole = path.with_name(f"{path.name}.{os.getpid()}")
    whole.write_bytes(msgspec.json.encode(result))
    whole.replace(path)


def read_result(spec: WorkerSpec) -> WorkerResult | None:
    """The result, ``None`` when the worker left none. Raises LaunchError for one that is broken."""
    path = SessionFiles.of(spec).result
    try:
        return msgspec.json.decode(path.read_bytes(), type=WorkerResult)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise LaunchError(f"the worker's result {path} cannot be read: {error}") from error
