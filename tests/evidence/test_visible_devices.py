from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tokbudget.evidence.nvml import Device
from pytest_tokbudget.evidence.visible_devices import visible_devices

GPUS = [
    Device(index=0, uuid="GPU-aaaa1111-0", product="NVIDIA H200", mig_profile=""),
    Device(index=1, uuid="GPU-aaaa2222-0", product="NVIDIA H200", mig_profile=""),
    Device(index=2, uuid="GPU-bbbb3333-0", product="NVIDIA H200", mig_profile=""),
]


def _slice(number: int, parent: Device) -> Device:
    return replace(
        parent,
        uuid=f"MIG-c{number}c{number}-0",
        mig_profile="1g.18gb",
        parent_uuid=parent.uuid,
        instances=(number + 7, 0),
    )


MIG = [
    GPUS[0],
    replace(GPUS[1], slices=(_slice(0, GPUS[1]), _slice(1, GPUS[1]))),
]


def _seen(devices: list[Device], named: str | None, **more: str) -> list[str]:
    environment = dict(more) if named is None else {"CUDA_VISIBLE_DEVICES": named, **more}
    return [one.uuid for one in visible_devices(devices, environment).devices]


@pytest.mark.parametrize(
    ("named", "indices"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("1", [1]),
        ("2,0", [2, 0]),
        (" 2 , 0 ", [2, 0]),
        ("1,-1,0", [1]),
        ("0,7,1", [0]),
        ("-1", []),
        ("NoDevFiles", []),
        ("0,0", []),
        ("GPU-aaaa1111-0", [0]),
        ("GPU-bbbb,GPU-aaaa2", [2, 1]),
        ("GPU-aaaa", []),
        ("GPU-bbbb,GPU-aaaa,0", [2]),
        ("GPU-aaaa1,GPU-aaaa1111-0", []),
        ("GPU-ffff", []),
        ("2,GPU-aaaa1", [2, 0]),
    ],
)
def test_cuda_visible_devices_is_read_as_cuda_reads_it(
    named: str | None, indices: list[int]
) -> None:
    assert _seen(GPUS, named) == [GPUS[index].uuid for index in indices]


@pytest.mark.parametrize(
    ("named", "uuids"),
    [
        (None, ["MIG-c0c0-0"]),
        ("0", ["GPU-aaaa1111-0"]),
        ("1", ["MIG-c0c0-0"]),
        ("MIG-c1c1-0", ["MIG-c1c1-0"]),
        ("MIG-c1", ["MIG-c1c1-0"]),
        ("MIG-c", []),
        ("MIG-GPU-aaaa2222-0/8/0", ["MIG-c1c1-0"]),
        ("MIG-GPU-aaaa2222-0/9/0", []),
        ("MIG-c1,MIG-c0", ["MIG-c1c1-0"]),
    ],
)
def test_of_mig_slices_cuda_shows_one(named: str | None, uuids: list[str]) -> None:
    assert _seen(MIG, named) == uuids


def test_an_order_that_only_cuda_knows_is_called_an_assumption() -> None:
    mixed = [*GPUS, replace(GPUS[0], index=3, uuid="GPU-l4", product="NVIDIA L4")]

    def said(**environment: str) -> str:
        return visible_devices(mixed, environment).assumption

    assert "PCI order was assumed" in said(CUDA_VISIBLE_DEVICES="0")
    assert said(CUDA_VISIBLE_DEVICES="0", CUDA_DEVICE_ORDER="PCI_BUS_ID") == ""
    assert said(CUDA_VISIBLE_DEVICES="GPU-l4") == ""
    assert said() == ""
    assert visible_devices(GPUS, {"CUDA_VISIBLE_DEVICES": "0"}).assumption == ""


@given(st.text(alphabet="0123-,+ GPUaMIGc/b", max_size=20))
def test_whatever_is_written_there_only_known_devices_come_out_once(named: str) -> None:
    seen = _seen(MIG, named)

    assert len(seen) == len(set(seen))
    assert set(seen) <= {"GPU-aaaa1111-0", "MIG-c0c0-0", "MIG-c1c1-0"}
