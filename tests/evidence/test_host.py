from __future__ import annotations

from pathlib import Path

import pytest

from pytest_tokbudget.evidence.host import (
    HostFiles,
    cpu_model,
    host_hash,
    memory_bytes,
    os_name,
    usable_cores,
)

GIB = 1 << 30


def _files(root: Path, **contents: str) -> HostFiles:
    """A file system; names are paths with ``__`` for ``/``, ``_dot_`` for ``.``."""
    for name, text in contents.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return HostFiles(root)


@pytest.mark.parametrize(
    ("cpuinfo", "model"),
    [
        ("processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD  EPYC 9655\n", "AMD EPYC 9655"),
        ("processor\t: 0\ncpu\t\t: POWER9, altivec\n", "POWER9, altivec"),
        ("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n", None),
        ("", None),
    ],
)
def test_the_cpu_is_named_as_the_kernel_names_it(
    tmp_path: Path, cpuinfo: str, model: str | None
) -> None:
    assert cpu_model(_files(tmp_path, proc__cpuinfo=cpuinfo)) == model


@pytest.mark.parametrize(
    ("quota", "cores"),
    [
        ("max 100000\n", 16),
        ("400000 100000\n", 4),
        ("150000 100000\n", 2),
        ("1000 100000\n", 1),
        ("9900000 100000\n", 16),
        ("garbage\n", 16),
    ],
)
def test_a_quota_of_version_2_limits_the_cores(tmp_path: Path, quota: str, cores: int) -> None:
    files = _files(tmp_path, proc__self__cgroup="0::/\n", sys__fs__cgroup__cpu_dot_max=quota)

    assert usable_cores(16, files) == cores


def test_the_tightest_quota_of_all_groups_above_counts(tmp_path: Path) -> None:
    files = _files(
        tmp_path,
        proc__self__cgroup="0::/pod/job\n",
        sys__fs__cgroup__pod__job__cpu_dot_max="max 100000",
        sys__fs__cgroup__pod__cpu_dot_max="300000 100000",
        sys__fs__cgroup__pod__job__memory_dot_max="max\n",
        sys__fs__cgroup__pod__memory_dot_max=f"{8 * GIB}\n",
    )

    assert usable_cores(16, files) == 3
    assert memory_bytes(64 * GIB, files) == 8 * GIB


@pytest.mark.parametrize("mounted", ["cpu,cpuacct", "cpu"])
def test_a_quota_of_version_1_limits_the_cores(tmp_path: Path, mounted: str) -> None:
    files = _files(
        tmp_path,
        **{
            "proc__self__cgroup": "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\nx\n0::/\n",
            f"sys__fs__cgroup__{mounted}__cpu_dot_cfs_quota_us": "250000\n",
            f"sys__fs__cgroup__{mounted}__cpu_dot_cfs_period_us": "100000\n",
            "sys__fs__cgroup__memory__memory_dot_limit_in_bytes": str(4 * GIB),
        },
    )

    assert usable_cores(16, files) == 3
    assert memory_bytes(64 * GIB, files) == 4 * GIB


def test_no_limit_of_version_1_is_no_limit(tmp_path: Path) -> None:
    files = _files(
        tmp_path,
        proc__self__cgroup="5:cpu:/\n4:memory:/\n",
        sys__fs__cgroup__cpu__cpu_dot_cfs_quota_us="-1\n",
        sys__fs__cgroup__cpu__cpu_dot_cfs_period_us="100000\n",
        sys__fs__cgroup__memory__memory_dot_limit_in_bytes="9223372036854771712\n",
    )

    assert usable_cores(16, files) == 16
    assert memory_bytes(1 << 63, files) == 1 << 63


def test_without_control_groups_the_affinity_counts(tmp_path: Path) -> None:
    assert usable_cores(6, HostFiles(tmp_path)) == 6
    assert memory_bytes(5 * GIB, HostFiles(tmp_path)) == 5 * GIB


def test_the_hash_tells_hosts_apart_and_does_not_name_them(tmp_path: Path) -> None:
    first = _files(tmp_path / "a", etc__machine_id="").root
    one = _files(tmp_path / "one", **{"etc__machine-id": "3d1219c7\n"})
    other = _files(tmp_path / "other", **{"etc__machine-id": "3d1219c8\n"})
    older = _files(tmp_path / "older", **{"var__lib__dbus__machine-id": "3d1219c7\n"})

    hashes = {host_hash(one), host_hash(other), host_hash(HostFiles(first))}

    assert len(hashes) == 3
    assert host_hash(older) == host_hash(one)
    assert all(len(one) == 12 and "3d12" not in one for one in hashes)


def test_this_host_is_described() -> None:
    assert usable_cores() >= 1
    assert memory_bytes() > 1 << 20
    assert "Linux" in os_name()
