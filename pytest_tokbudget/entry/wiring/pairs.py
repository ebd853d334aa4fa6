"""What the controller of an A/B works with: the ref's checkout, and pairs of workers."""

from __future__ import annotations

import contextlib
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ...errors import LaunchError
from ...judging import Pair, judge_pairs
from ...launching.pair import LauncherOf, PairOutcome, run_pair
from ...launching.trees import spec_at_ref, to_ref, trees_of
from ...launching.worktree import Ref, build, overlaid, resolve_ref, worktree_at
from ...records.launch import Trees, WorkerOutcome, WorkerSpec
from ..settings import Settings
from .services import Services

__all__ = ["Pair", "PairOutcome", "Pairs", "judge_pairs"]


class Pairs:
    """Built once by the controller of an A/B; checks the ref out when the first pair is wanted."""

    def __init__(self, settings: Settings, services: Services) -> None:
        """Find the ref. Raises UsageError."""
        assert settings.against is not None
        self._settings, self._services = settings, services
        self.ref: Ref = resolve_ref(settings.rootdir, settings.against)
        self.counts = False
        self._worktree: Path | None = None
        self._open = contextlib.ExitStack()
        # Fixed, so that a run can be repeated; the host's moods are not.
        self._random = random.Random(self.ref.sha)
        services.at_the_end(self._open.close)

    @property
    def worktree(self) -> Path:
        """The ref's checkout, built. Raises LaunchError."""
        if self._worktree is None:
            path = self._open.enter_context(worktree_at(self.ref))
            if self._settings.against_build:
                build(path, self._settings.against_build, self.ref.top)
            self._worktree = path
        return self._worktree

    def at_ref(self, path: Path) -> Path:
        """Where ``path`` is in the ref's checkout."""
        return Path(to_ref(str(path), self._trees("ref")))

    @contextlib.contextmanager
    def with_files(self, files: list[Path]) -> Iterator[None]:
        """Put HEAD's ``files`` into the ref's checkout for a while."""
        top = Path(self._trees("head").head)
        with overlaid(self.worktree, top, [one.resolve() for one in files]):
            yield

    def in_turn(self, nodeid: str, index: int, total: int) -> PairOutcome:
        """Measure pair ``index`` (from 0), both sides at work at once, stepping in turn."""
        launcher: LauncherOf = self._services.launcher
        with (
            self._services.shown_as(nodeid, index, total),
            self._spec(nodeid, index, "ref") as ref,
            self._spec(nodeid, index, "head") as head,
        ):
            return run_pair(ref, head, launcher, ref_first=index % 2 == 0, rng=self._random)

    def one_after_the_other(
        self, nodeid: str, index: int, total: int, *, evidence: bool = False
    ) -> PairOutcome:
        """Measure pair ``index`` as two whole sessions, with an evidence pass each or not."""
        outcomes: dict[str, WorkerOutcome] = {}
        for side in ("ref", "head") if index % 2 == 0 else ("head", "ref"):
            with (
                self._services.shown_as(nodeid, index, total),
                self._spec(nodeid, index, side) as spec,
            ):
                spec = msgspec.structs.replace(spec, evidence=evidence)
                outcomes[side] = self._services.measured(spec)
        return PairOutcome(ref=outcomes["ref"], head=outcomes["head"])

    def _trees(self, side: str) -> Trees:
        return trees_of(self.ref.top, self.worktree, side)

    @contextlib.contextmanager
    def _spec(self, nodeid: str, index: int, side: str) -> Iterator[WorkerSpec]:
        trees = self._trees(side)
        with tempfile.TemporaryDirectory(prefix="tokbudget-") as scratch:
            spec = self._services.spec(nodeid, index, Path(scratch))
            spec = msgspec.structs.replace(spec, counts=self.counts)
            if side == "head":
                yield msgspec.structs.replace(spec, trees=trees)
                return
            at_ref = msgspec.structs.replace(spec, **spec_at_ref(spec, trees))
            if not Path(at_ref.cwd).is_dir():
                raise LaunchError(
                    f"{spec.cwd} does not exist at {self.ref}: start pytest higher up"
                )
            yield at_ref
