"""SIGTERM while a checkout of the ref exists: removed first, then obeyed."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pytest_tokbudget.launching.sigterm import removed_on_sigterm
from pytest_tokbudget.launching.worktree import PREFIX

from .ab_repository import Repository

WAITING = """
import os, signal, sys
from pathlib import Path
from pytest_tokbudget.launching.worktree import resolve_ref, worktree_at
{before}
with worktree_at(resolve_ref(Path(sys.argv[1]), "HEAD")) as path:
    {inside}
    try:
        print(path, flush=True)
        sys.stdin.readline()
    except BaseException as error:
        print(type(error).__name__)
        {caught}
        raise
    print("went on")
{after}
"""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    repository = Repository(tmp_path / "repo", tmp_path / "site")
    repository.top.mkdir()
    repository.git("init", "-q")
    repository.commit({"a.py": "ref"})
    return repository


def _ended(
    repository: Repository,
    *,
    before: str = "",
    inside: str = "",
    caught: str = "",
    after: str = "",
    told: bool = True,
) -> tuple[int, str, Path]:
    """Send SIGTERM (if ``told``) to a process with a checkout, then a line that lets it go on.

    Returns its status, its output and the checkout.
    """
    code = WAITING.format(before=before, inside=inside or "pass", caught=caught, after=after)
    with subprocess.Popen(
        [sys.executable, "-c", code, str(repository.top)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            path = Path(process.stdout.readline().strip())
            assert path.exists()
            if told:
                process.send_signal(signal.SIGTERM)
            output, _ = process.communicate("\n", timeout=60)
        finally:
            process.kill()
    return process.returncode, output, path


def _left(repository: Repository, path: Path) -> bool:
    return path.exists() or PREFIX in repository.git("worktree", "list")


def test_the_checkout_is_removed_and_the_signal_obeyed(repository: Repository) -> None:
    status, output, path = _ended(repository)

    assert (status, output) == (-signal.SIGTERM, "Terminated\n")
    assert not _left(repository, path)


def test_a_second_one_does_not_break_the_unwinding_off(repository: Repository) -> None:
    status, output, path = _ended(
        repository, caught="os.kill(os.getpid(), signal.SIGTERM); print('unwound')"
    )

    assert (status, output) == (-signal.SIGTERM, "Terminated\nunwound\n")
    assert not _left(repository, path)


def test_one_during_the_removal_waits_for_its_end(repository: Repository) -> None:
    status, output, path = _ended(
        repository,
        told=False,
        before=(
            "from pytest_tokbudget.launching import worktree\n"
            "real = worktree._remove\n"
            "def remove(top, path):\n"
            "    os.kill(os.getpid(), signal.SIGTERM)\n"
            "    real(top, path)\n"
            "    print('removed')\n"
            "worktree._remove = remove"
        ),
        after="print('never')",
    )

    assert (status, output) == (-signal.SIGTERM, "went on\nremoved\n")
    assert not _left(repository, path)


HANDLER = "signal.signal(signal.SIGTERM, lambda *_: (print('theirs'), sys.exit(7)))"


@pytest.mark.parametrize("when", ["before", "inside"])
def test_a_handler_of_the_user_decides(repository: Repository, when: str) -> None:
    before, inside = (HANDLER, "") if when == "before" else ("", HANDLER)

    status, output, path = _ended(repository, before=before, inside=inside)

    assert (status, output) == (7, "theirs\nSystemExit\n")
    assert not _left(repository, path)


def test_who_ignores_the_signal_goes_on(repository: Repository) -> None:
    status, output, path = _ended(
        repository, before="signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    )

    assert (status, output) == (0, "went on\n")
    assert not _left(repository, path)


def test_afterwards_the_signal_has_its_default_again(repository: Repository) -> None:
    status, output, _ = _ended(
        repository,
        told=False,
        after="print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)",
    )

    assert (status, output) == (0, "went on\nTrue\n")


def test_beside_the_main_thread_nothing_is_set() -> None:
    done: list[object] = []

    def elsewhere() -> None:
        with removed_on_sigterm(lambda: done.append("removed")):
            done.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()

    assert done == [signal.getsignal(signal.SIGTERM), "removed"]
