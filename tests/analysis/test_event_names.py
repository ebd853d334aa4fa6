from __future__ import annotations

import pytest

from pytest_tokbudget.analysis.event_names import (
    api_kind,
    copy_direction,
    device_kind,
    is_annotation,
    is_api,
    sync_kind,
)
from pytest_tokbudget.analysis.timeline import ApiKind, DeviceKind, SyncKind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cudaLaunchKernel", ApiKind.LAUNCH),
        ("cudaLaunchKernelExC", ApiKind.LAUNCH),
        ("cuLaunchKernelEx", ApiKind.LAUNCH),
        ("cudaLaunchCooperativeKernel", ApiKind.LAUNCH),
        ("cudaLaunchHostFunc", ApiKind.OTHER),
        ("cudaGraphLaunch", ApiKind.GRAPH_LAUNCH),
        ("cudaMemcpyAsync", ApiKind.COPY),
        ("cudaMemsetAsync", ApiKind.SET),
        ("cudaStreamSynchronize", ApiKind.SYNC),
        ("cudaStreamWaitEvent", ApiKind.WAIT_EVENT),
        ("cudaMalloc", ApiKind.ALLOC),
        ("cudaHostAlloc", ApiKind.ALLOC),
        ("cuMemCreate", ApiKind.ALLOC),
        ("cudaFree", ApiKind.FREE),
        ("cudaFreeHost", ApiKind.FREE),
        ("cuMemUnmap", ApiKind.FREE),
        ("cudaStreamBeginCapture", ApiKind.CAPTURE),
        ("cudaStreamIsCapturing", ApiKind.OTHER),
        ("cudaMemGetInfo", ApiKind.OTHER),
        ("cudaEventRecord", ApiKind.OTHER),
    ],
)
def test_calls_are_told_apart(name: str, kind: ApiKind) -> None:
    assert is_api(name)
    assert api_kind(name) == kind


@pytest.mark.parametrize("name", ["aten::add", "cudagraph_step", "custom op", "Optimizer.step#A"])
def test_operators_are_no_calls(name: str) -> None:
    assert not is_api(name)


def test_device_rows_are_told_apart() -> None:
    assert device_kind("ncclDevKernel_AllReduce_Sum_f32") == DeviceKind.COMMUNICATION
    assert device_kind("Memset (Device)") == DeviceKind.SET
    assert device_kind("Memcpy DtoD (Device -> Device)") == DeviceKind.COPY
    assert device_kind("void my_memcpy_kernel()") == DeviceKind.COMPUTE
    assert sync_kind("Stream Wait Event") == SyncKind.WAIT_EVENT
    assert sync_kind("gemm") is None
    assert is_annotation("nccl:all_reduce")
    assert not is_annotation("ncclDevKernel_AllReduce_Sum_f32")


def test_directions_of_copies() -> None:
    assert copy_direction("Memcpy HtoD (Pageable -> Device)") == "HtoD pageable"
    assert copy_direction("Memcpy DtoH (Device -> Pinned)") == "DtoH pinned"
    assert copy_direction("Memcpy DtoD (Device -> Device)") == "DtoD"
