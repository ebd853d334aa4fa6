"""What the kernel says about kills for want of memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_tokbudget.launching.memory import OomCounts, explain_kill, read_oom_counts


def _write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


EVENTS = "low 0\nhigh 0\nmax 12\noom 4\noom_kill 3\noom_group_kill 0\n"


def test_cgroup_v2(tmp_path: Path) -> None:
    _write(tmp_path, "proc/self/cgroup", "0::/job/7\n")
    _write(tmp_path, "sys/fs/cgroup/job/7/memory.events", EVENTS)
    _write(tmp_path, "proc/vmstat", "pgfault 5\noom_kill 8\n")

    assert read_oom_counts(tmp_path) == OomCounts(cgroup=3, host=8)


def test_cgroup_v2_seen_from_inside_a_container(tmp_path: Path) -> None:
    _write(tmp_path, "proc/self/cgroup", "0::/../../docker/abc\n")
    _write(tmp_path, "sys/fs/cgroup/memory.events", EVENTS)

    assert read_oom_counts(tmp_path) == OomCounts(cgroup=3, host=None)


def test_cgroup_v1(tmp_path: Path) -> None:
    _write(tmp_path, "proc/self/cgroup", "12:cpu,cpuacct:/a\n4:memory:/job\n1:name=systemd:/b\n")
    _write(
        tmp_path,
        "sys/fs/cgroup/memory/job/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    )

    assert read_oom_counts(tmp_path) == OomCounts(cgroup=2, host=None)


def test_nothing_to_read(tmp_path: Path) -> None:
    assert read_oom_counts(tmp_path) == OomCounts(cgroup=None, host=None)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (OomCounts(1, 5), OomCounts(2, 6), "out of memory: the kernel counted"),
        (OomCounts(1, 5), OomCounts(1, 6), "may have been another process"),
        (OomCounts(None, 5), OomCounts(None, 6), "may have been another process"),
        (OomCounts(1, 5), OomCounts(1, 5), "somebody sent the signal"),
        (OomCounts(None, 5), OomCounts(None, 5), "somebody sent the signal"),
        (OomCounts(None, None), OomCounts(None, None), "cannot be read"),
    ],
)
def test_no_more_is_said_than_is_known(before: OomCounts, after: OomCounts, words: str) -> None:
    assert words in explain_kill(before, after)
