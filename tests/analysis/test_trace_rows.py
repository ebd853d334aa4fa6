from __future__ import annotations

import numpy as np

from pytest_tokbudget.analysis.timeline import ApiKind, DeviceKind, SyncKind, Window
from pytest_tokbudget.analysis.trace_rows import KnownThread, timeline_from_rows

NAMES = (
    "cudaLaunchKernel",
    "gemm",
    "Optimizer.step#AdamW.step",
    "my annotation",
    "aten::add",
    "Stream Sync",
    "Activity Buffer Request",
    "ncclDevKernel_AllReduce",
    "Memcpy HtoD (Pageable -> Device)",
)
WINDOW = Window(0, 1_000, 1)


def row(name: str, device: bool, where: int, resource: int, corr: int = 0) -> list[int]:
    return [0, NAMES.index(name), -1, int(device), where, resource, 10, 5, corr, 0, 1]


def test_rows_are_sorted_by_what_their_names_mean() -> None:
    rows = np.array(
        [
            row("cudaLaunchKernel", False, 99, 41, 7),
            row("gemm", True, 0, 7, 7),
            row("Optimizer.step#AdamW.step", True, 0, 7, 7),
            row("my annotation", True, 0, 7, 7),
            row("my annotation", False, 99, 41, 7),
            row("aten::add", False, 99, 41, 7),
            row("Stream Sync", True, 1, 7, 3),
            row("Activity Buffer Request", False, -1, 0),
            row("ncclDevKernel_AllReduce", True, 1, 9, 8),
            row("Memcpy HtoD (Pageable -> Device)", True, 1, 9, 9),
        ],
        np.int64,
    )
    line = timeline_from_rows(rows, NAMES, [KnownThread("main", 5, 41)], WINDOW)
    assert line.devices == (0, 1)
    assert line.device_events.kind.tolist() == [
        DeviceKind.COMPUTE,
        DeviceKind.COMMUNICATION,
        DeviceKind.COPY,
    ]
    assert line.host_calls.kind.tolist() == [ApiKind.LAUNCH]
    assert line.syncs.kind.tolist() == [SyncKind.STREAM]
    assert len(line.stalls) == 1
    assert line.ops is not None
    assert [NAMES[name] for name in line.ops.name] == ["my annotation", "aten::add"]


def test_threads_are_found_by_native_id_and_by_the_low_half_of_their_ident() -> None:
    ident = 0x7FCF_1B82_2000
    rows = np.array(
        [
            row("cudaLaunchKernel", False, 99, 41),
            row("cudaLaunchKernel", False, 99, ident & 0xFFFFFFFF),
            row("cudaLaunchKernel", False, 99, (ident & 0xFFFFFFFF) - 2**32),
            row("cudaLaunchKernel", False, 99, 0x2CDC_B6C0),
            row("cudaLaunchKernel", False, 99, 724),
        ],
        np.int64,
    )
    known = [KnownThread("main", 1, 41), KnownThread("loader", ident, 42, "loader")]
    line = timeline_from_rows(rows, NAMES, known, WINDOW, devices=(0, 1))
    found = [line.threads[at] for at in line.host_calls.thread]
    assert [one.native_id for one in found] == [41, 42, 42, 0, 724]
    assert [one.python for one in found] == [True, True, True, False, False]
    assert found[1].role == "loader"
    assert line.devices == (0, 1)
