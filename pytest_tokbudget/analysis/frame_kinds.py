"""What a frame is: whether a thread in it waits for others, sleeps or runs, and its short path."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path


class FrameKind(IntEnum):
    """What the innermost frame says. ``WAIT``: for another thread or process (a lock, a queue, a
    future, a pipe); ``SLEEP``: a timed wait; ``RUN``: anything else, be it on a CPU or not."""

    RUN = 0
    WAIT = 1
    SLEEP = 2


OURS = f"{Path(__file__).parents[1]}{os.sep}"
"""Where this package's own files lie."""
INSTRUMENTS = f"{OURS}evidence{os.sep}"
MEASURING = f"{OURS}measuring{os.sep}"
LOOPS = frozenset(f"{MEASURING}{name}.py" for name in ("loop", "paced_loop", "evidence_pass"))
"""Those that call a step of the user's."""

_PROXY = f"{MEASURING}queues.py"
_PROXY_CALLS = "call(*args"
"""Where our queue proxy is inside a queue that is written in C (``queue.SimpleQueue``)."""

_WAITING_FILES = {
    "threading.py": {"wait", "wait_for", "acquire", "join", "_wait_for_tstate_lock", "__enter__"},
    "queue.py": {"get", "put", "join"},
    "selectors.py": {"select"},
    "connection.py": {"wait", "poll", "recv", "recv_bytes", "_recv", "_poll"},
    "_base.py": {"result", "wait", "as_completed"},
    "popen_fork.py": {"poll", "wait"},
    "subprocess.py": {"wait", "_wait", "_try_wait", "communicate"},
    "thread.py": {"_worker"},
    "synchronize.py": {"acquire", "wait", "__enter__"},
}
"""Of the standard library, whose innermost Python frame is the wait."""

_WAITING_TEXT = re.compile(r"\.(?:wait|wait_for|acquire|recv|recv_bytes|poll)\(|\bselect\.select\(")
"""Of calls into C: a thread's ``join`` has a Python frame of its own, a string's has none."""
_LOCK_TEXT = re.compile(
    r"^\s*with\s+[\w.]*(?:lock|mutex|cond\w*|not_empty|not_full)\s*:", re.IGNORECASE
)
_SLEEP_TEXT = re.compile(r"\bsleep\(")
_IO_TEXT = re.compile(r"\b(?:fsync|fdatasync|flush|sendall|sendfile|urlopen)\(")
_PACKAGES = re.compile(r"^.*/(?:site|dist)-packages/")
_LIBRARY = re.compile(r"^.*/lib/python3\.\d+t?/")
_PLUMBING = frozenset({"threading.py", "queue.py", "contextlib.py", "selectors.py"})
_BOOTSTRAP = frozenset({"_bootstrap", "_bootstrap_inner", "run"})


def frame_kind(function: str, file: str, text: str) -> FrameKind:
    """Classify by function, file and (where it could be read) the text of the line.

    A call into C has no frame of its own: the text of the line tells a sleep.
    """
    bare = function.rpartition(".")[2]
    if _is_library(file) and bare in _WAITING_FILES.get(os.path.basename(file), ()):  # noqa: PTH119
        return FrameKind.WAIT
    if file == _PROXY and _PROXY_CALLS in text:
        return FrameKind.WAIT
    if _SLEEP_TEXT.search(text):
        return FrameKind.SLEEP
    if _WAITING_TEXT.search(text) or _LOCK_TEXT.search(text):
        return FrameKind.WAIT
    return FrameKind.RUN


def is_blocking_io(text: str) -> bool:
    """Whether the line makes a call that waits for a disk or a socket."""
    return bool(_IO_TEXT.search(text))


def is_plumbing(short_file: str) -> bool:
    """Code that waits on behalf of others: the standard library's, and our queue proxy."""
    return short_file in _PLUMBING or short_file.startswith("pytest_tokbudget/measuring/")


def is_library_code(file: str) -> bool:
    """Code that the user did not write: installed, of the standard library, generated, or ours."""
    installed = _PACKAGES.match(file) or _LIBRARY.match(file)
    return bool(installed) or file.startswith(("<", OURS))


def _is_library(file: str) -> bool:
    return bool(_LIBRARY.match(file)) and not _PACKAGES.match(file)


def short_path(file: str, rootdir: str) -> str:
    """``file`` relative to ``rootdir``, to site-packages, or to the standard library; generated
    code keeps its name (``"<string>"``)."""
    for pattern in (_PACKAGES, _LIBRARY):
        if match := pattern.match(file):
            return file[match.end() :]
    root = rootdir.rstrip("/") + "/"
    return file[len(root) :] if rootdir and file.startswith(root) else file


def root_frame(stack: Sequence[tuple[str, str, int]]) -> tuple[str, str, int]:
    """The function a thread was started with: the first frame that is not ``threading``'s own."""
    for function, file, line in stack:
        bare = function.rpartition(".")[2]
        if not (bare in _BOOTSTRAP and file.endswith("/threading.py")):
            return function, file, line
    return stack[0]
