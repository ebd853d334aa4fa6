"""The host as the measured process may use it: CPU, cores, memory, and a hash that tells it apart.

Control groups matter as much as hardware: a container of 4 cores on a host of 96 is a machine of 4.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import os
import platform
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

_APPLICATION = b"pytest-tokbudget host"
_V1_UNLIMITED = 1 << 60


@dataclass(frozen=True)
class HostFiles:
    """Where the kernel shows what is read here: the root of the file system, else a test's."""

    root: Path = Path("/")

    def text(self, path: str) -> str | None:
        """The content of a file, None where it cannot be read."""
        try:
            return (self.root / path.lstrip("/")).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None


SYSTEM = HostFiles()


def cpu_model(files: HostFiles = SYSTEM) -> str | None:
    """The model as the kernel names it, ``lscpu`` where it does not (ARM), None if neither."""
    info = files.text("/proc/cpuinfo") or ""
    match = re.search(r"^(?:model name|cpu model|cpu)\s*:\s*(\S.*)$", info, re.MULTILINE)
    if match:
        return " ".join(match[1].split())
    return _from_lscpu() if files is SYSTEM else None


def _from_lscpu() -> str | None:
    try:
        done = subprocess.run(
            ["lscpu"],
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return platform.processor() or None
    match = re.search(r"^Model name:\s*(\S.*)$", done.stdout, re.MULTILINE)
    return " ".join(match[1].split()) if match else platform.processor() or None


def usable_cores(affinity: int | None = None, files: HostFiles = SYSTEM) -> int:
    """Cores that the process may keep busy: its affinity, or the tightest CPU quota above it.

    A quota of a part of a core counts as a whole one: 1.5 cores is 2. ``affinity`` defaults to that
    of the calling thread.
    """
    if affinity is None:
        affinity = len(os.sched_getaffinity(0))
    quotas = [math.ceil(quota) for quota in _cpu_quotas(files)]
    return max(1, min([affinity, *quotas]))


def memory_bytes(total: int | None = None, files: HostFiles = SYSTEM) -> int:
    """Memory the process may have, in bytes: the host's, or the tightest limit above it."""
    if total is None:
        total = psutil.virtual_memory().total
    return min([total, *_memory_limits(files)])


def _groups(files: HostFiles, controller: str) -> Iterator[tuple[bool, str]]:
    """Directories of the process's control group and those above it, as (is version 2, path).

    In a container the path named in ``/proc/self/cgroup`` is often the host's and not mounted; the
    mounted root then is the container's own group, and is looked at in any case.
    """
    for line in (files.text("/proc/self/cgroup") or "0::/").splitlines():
        parts = line.split(":", 2)
        if len(parts) != 3:
            continue
        number, controllers, path = parts
        if number == "0" and not controllers:
            mounts, version_2 = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"], True
        elif controller in controllers.split(","):
            mounts, version_2 = (
                [f"/sys/fs/cgroup/{controllers}", f"/sys/fs/cgroup/{controller}"],
                False,
            )
        else:
            continue
        names = [name for name in path.split("/") if name not in ("", "..")]
        for mount in dict.fromkeys(mounts):
            for depth in range(len(names), -1, -1):
                yield version_2, "/".join([mount, *names[:depth]])


def _cpu_quotas(files: HostFiles) -> Iterator[float]:
    for version_2, group in _groups(files, "cpu"):
        if version_2:
            quota, _, period = (files.text(f"{group}/cpu.max") or "").partition(" ")
        else:
            quota = files.text(f"{group}/cpu.cfs_quota_us") or ""
            period = files.text(f"{group}/cpu.cfs_period_us") or ""
        # "max" and -1 mean no quota.
        if quota.strip().isdigit() and period.strip().isdigit() and int(period) > 0:
            yield int(quota) / int(period)


def _memory_limits(files: HostFiles) -> Iterator[int]:
    for version_2, group in _groups(files, "memory"):
        name = "memory.max" if version_2 else "memory.limit_in_bytes"
        text = (files.text(f"{group}/{name}") or "").strip()
        if text.isdigit() and 0 < int(text) < _V1_UNLIMITED:
            yield int(text)


def host_hash(files: HostFiles = SYSTEM) -> str:
    """12 hex digits that tell hosts apart without naming them.

    HMAC-SHA256 of this application's name, keyed by the machine id, as machine-id(5) asks for; by
    the host name where there is no machine id.
    """
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        secret = (files.text(path) or "").strip()
        if secret and secret != "uninitialized":
            break
    else:
        secret = platform.node()
    return hmac.new(secret.encode(), _APPLICATION, hashlib.sha256).hexdigest()[:12]


def os_name() -> str:
    """The distribution and the kernel: ``"Ubuntu 22.04.4 LTS, Linux 6.8.0"``."""
    kernel = f"{platform.system()} {platform.release()}"
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {kernel}"
    except (OSError, KeyError):
        return kernel
