"""Whether the kernel killed processes for want of memory, as far as it says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class OomCounts:
    """Kills counted so far: in this process's cgroup, and on the whole host; ``None`` unknown."""

    cgroup: int | None
    host: int | None


def read_oom_counts(root: Path = Path("/")) -> OomCounts:
    """Read the kernel's counters. ``root`` is for tests."""
    return OomCounts(
        cgroup=_cgroup_kills(root), host=_counter(root / "proc/vmstat", r"^oom_kill (\d+)$")
    )


def _cgroup_kills(root: Path) -> int | None:
    """``oom_kill`` of cgroup v2 (``memory.events``) or v1 (``memory.oom_control``)."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        mount, name = (
            ("sys/fs/cgroup", "memory.events")
            if controllers == ""
            else ("sys/fs/cgroup/memory", "memory.oom_control")
        )
        # Inside a container the path may be the host's while the mount shows the container's own.
        for directory in (root / mount / path.lstrip("/"), root / mount):
            found = _counter(directory / name, r"^oom_kill (\d+)$")
            if found is not None:
                return found
    return None


def _counter(path: Path, pattern: str) -> int | None:
    try:
        match = re.search(pattern, path.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(match[1]) if match else None


def explain_kill(before: OomCounts, after: OomCounts) -> str:
    """One sentence on whether a SIGKILL between the two readings was for want of memory."""
    if _rose(before.cgroup, after.cgroup):
        return (
            "out of memory: the kernel counted an out-of-memory kill in this cgroup meanwhile; "
            "give the job more memory, or let the test use less"
        )
    if _rose(before.host, after.host):
        return (
            "probably out of memory: the kernel counted an out-of-memory kill on this host "
            "meanwhile, which may have been another process"
        )
    if after.cgroup is None and after.host is None:
        return "out of memory? the kernel's counters of such kills cannot be read here"
    return (
        "the kernel counted no out-of-memory kill meanwhile, so somebody sent the signal: "
        "a person, the job scheduler, or the container's runtime"
    )


def _rose(before: int | None, after: int | None) -> bool:
    return before is not None and after is not None and after > before
