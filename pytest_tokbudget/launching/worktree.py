"""A second checkout of the repository under test, at a git ref, for as long as an A/B lasts."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import LaunchError, UsageError
from .git import git
from .sigterm import removed_on_sigterm

PREFIX = "tokbudget-ref-"
_NAME = re.compile(re.escape(PREFIX) + r"(\d+)-(\d+)-")
_SHOWN_LINES = 30


@dataclass(frozen=True)
class Ref:
    """A ref and the commit it names now, in the repository whose tree is at ``top``.

    ``submodules`` are those of the commit: a worktree holds none of their files.
    """

    name: str
    sha: str
    top: Path
    submodules: tuple[str, ...] = ()

    def __str__(self) -> str:
        short = self.sha[:10]
        return short if self.sha.startswith(self.name) else f"{self.name} ({short})"


def resolve_ref(rootdir: Path, name: str) -> Ref:
    """Find the commit of ``name``. Raises UsageError outside git and for what names no commit."""
    option = f"--tokbudget-against {name!r}"
    if not name.strip():
        raise UsageError(f"{option}: name a branch, tag or commit")
    try:
        top = Path(git(rootdir, "rev-parse", "--show-toplevel").rstrip("\n"))
    except LaunchError as error:
        raise UsageError(f"{option}: {rootdir} is in no git repository: {error}") from None
    try:
        sha = git(top, "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}").strip()
    except LaunchError:
        shallow = git(top, "rev-parse", "--is-shallow-repository").strip() == "true"
        advice = "this clone is shallow: fetch it first (git fetch --unshallow, or fetch-depth: 0)"
        raise UsageError(
            f"{option}: names no commit in {top}; "
            + (advice if shallow else "see git branch --all and git tag, or fetch it first")
        ) from None
    entries = git(top, "ls-tree", "-r", "-z", sha).split("\0")
    modules = tuple(one.partition("\t")[2] for one in entries if one.startswith("160000 "))
    return Ref(name, sha, top, modules)


@contextlib.contextmanager
def worktree_at(ref: Ref) -> Iterator[Path]:
    """Check ``ref`` out in a temporary directory, removed at the end; stale ones are removed first.

    SIGTERM is such an end, too (``removed_on_sigterm``). Raises LaunchError where git cannot.
    """
    remove_stale(ref.top)
    path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-{_started(os.getpid())}-"))
    path = path.resolve()
    with removed_on_sigterm(lambda: _remove(ref.top, path)):
        # A hook of the user's (a build, a download) is for people's checkouts.
        git(ref.top, "-c", f"core.hooksPath={os.devnull}", *_ADD, str(path), ref.sha)
        yield path


_ADD = ("worktree", "add", "--quiet", "--detach", "--force")


def remove_stale(top: Path) -> list[Path]:
    """Remove worktrees left by processes of this package that ended without; return them."""
    removed = []
    for line in git(top, "worktree", "list", "--porcelain").splitlines():
        path = Path(line.removeprefix("worktree "))
        match = _NAME.match(path.name) if line.startswith("worktree ") else None
        if match and _started(int(match[1])) != int(match[2]):
            _remove(top, path)
            removed.append(path)
    return removed


def _started(pid: int) -> int:
    """When process ``pid`` started, in clock ticks since boot; −1 where there is none.

    A process id is used again, an id and its start are not.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return -1
    return int(stat.rpartition(")")[2].split()[19])


def _remove(top: Path, path: Path) -> None:
    """Remove the checkout and git's record of it; whatever git says, the directory goes.

    Only our own record: ``git worktree prune`` would forget those on a disk that is away, too.
    """
    shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(LaunchError):
        git(top, "worktree", "remove", "--force", "--force", str(path))


def build(worktree: Path, command: str, head: Path) -> None:
    """Run the shell command ``command`` in ``worktree``; ``TOKBUDGET_HEAD`` names HEAD's tree.

    Raises LaunchError with the end of its output.
    """
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=worktree,
        env={**os.environ, "TOKBUDGET_HEAD": str(head)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        shown = os.fsdecode(done.stdout).splitlines()[-_SHOWN_LINES:]
        raise LaunchError(
            f"tokbudget_against_build failed with exit status {done.returncode} in a checkout of "
            f"the ref: {command}\n" + "\n".join(shown)
        )


@contextlib.contextmanager
def overlaid(worktree: Path, head: Path, files: list[Path]) -> Iterator[None]:
    """Put HEAD's ``files`` (absolute, below ``head``) into ``worktree``, and undo it at the end."""
    saved: dict[Path, bytes | None] = {}
    try:
        for file in files:
            target = worktree / file.relative_to(head)
            saved[target] = target.read_bytes() if target.exists() else None
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        yield
    finally:
        for target, content in saved.items():
            if content is None:
                target.unlink(missing_ok=True)
            else:
                target.write_bytes(content)
