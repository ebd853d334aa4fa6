from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_tokbudget.evidence.machine import form_factor_of, read_machine
from pytest_tokbudget.evidence.nvml import Device, DriverView, Nvml, mig_profile_of
from pytest_tokbudget.evidence.software import read_software, written_version
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.machine import Accelerator, MachineRecord


@dataclass
class FakeDriver:
    """A driver that shows what it was given."""

    view: DriverView | Unavailable

    def read(self) -> DriverView | Unavailable:
        return self.view


H200 = Device(
    index=0,
    uuid="GPU-1",
    product="NVIDIA H200",
    memory_bytes=143_771 << 20,
    power_limit_w=700.0,
    mig_profile="",
)


def _read(
    tmp_path: Path, view: DriverView | Unavailable, pool: str = "", **environment: str
) -> MachineRecord:
    return read_machine(pool, rootdir=tmp_path, reader=FakeDriver(view), environment=environment)


def test_an_accelerator_is_recorded_as_the_driver_describes_it(tmp_path: Path) -> None:
    machine = _read(tmp_path, DriverView("570.1", [H200]), pool="night")

    assert machine.accelerators == [
        Accelerator(
            index=0,
            uuid="GPU-1",
            product="NVIDIA H200",
            form_factor="SXM",
            memory_bytes=143_771 << 20,
            mig_profile="",
            power_limit_w=700.0,
        )
    ]
    assert (machine.software.driver, machine.pool) == ("570.1", "night")
    assert "not a git repository" in machine.unavailable.pop("commit")
    assert machine.unavailable == {}


def test_without_a_driver_the_reason_stands_in_the_record(tmp_path: Path) -> None:
    machine = _read(tmp_path, Unavailable("NVML did not start", "install a driver"))

    assert machine.accelerators == []
    assert machine.unavailable["accelerators"] == "NVML did not start (install a driver)"
    assert machine.software.driver is None


def test_gpus_that_are_hidden_or_missing_are_told_apart(tmp_path: Path) -> None:
    hidden = _read(tmp_path, DriverView("570.1", [H200]), CUDA_VISIBLE_DEVICES="")
    missing = _read(tmp_path, DriverView("570.1", []))

    assert hidden.unavailable["accelerators"] == (
        "CUDA_VISIBLE_DEVICES='' hides all 1 GPUs of the driver"
    )
    assert missing.unavailable["accelerators"] == "the driver shows no GPU"


def test_an_assumed_order_is_recorded(tmp_path: Path) -> None:
    small = Device(index=1, uuid="GPU-2", product="NVIDIA L4")

    machine = _read(tmp_path, DriverView(None, [H200, small]), CUDA_VISIBLE_DEVICES="1")

    assert [one.product for one in machine.accelerators] == ["NVIDIA L4"]
    assert "PCI order was assumed" in machine.unavailable["accelerator_order"]


@pytest.mark.parametrize(
    ("product", "form"),
    [
        ("NVIDIA H200", "SXM"),
        ("NVIDIA H200 NVL", "NVL"),
        ("NVIDIA H100 80GB HBM3", "SXM"),
        ("NVIDIA H100 PCIe", "PCIe"),
        ("NVIDIA A100-SXM4-80GB", "SXM"),
        ("NVIDIA A100-PCIE-40GB", "PCIe"),
        ("Tesla V100-SXM2-32GB", "SXM"),
        ("NVIDIA B200", "SXM"),
        ("NVIDIA GH200 480GB", None),
        ("NVIDIA L4", None),
        ("NVIDIA GeForce RTX 4090", None),
    ],
)
def test_the_form_factor_is_read_from_the_name(product: str, form: str | None) -> None:
    assert form_factor_of(product) == form


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "1g.5gb"),
        ("NVIDIA H200 MIG 1g.18gb+me", "1g.18gb+me"),
        ("NVIDIA H200", None),
        ("", None),
    ],
)
def test_the_mig_profile_is_read_from_the_name(name: str, profile: str | None) -> None:
    assert mig_profile_of(name) == profile


def test_nvml_answers_on_any_machine() -> None:
    view = Nvml().read()

    assert isinstance(view, (DriverView, Unavailable))
    if isinstance(view, DriverView):
        assert all(device.uuid.startswith("GPU-") for device in view.devices)


VERSION_PY = """
from typing import Optional
__version__ = '2.13.0+cu126'
debug = False
cuda: Optional[str] = '12.6'
hip: Optional[str] = None
"""


def test_torchs_versions_are_read_from_its_text() -> None:
    assert written_version(VERSION_PY, "__version__") == "2.13.0+cu126"
    assert written_version(VERSION_PY, "cuda") == "12.6"
    assert written_version(VERSION_PY, "hip") is None
    assert written_version(VERSION_PY, "absent") is None


READ = """
import json, sys
from pathlib import Path
if sys.argv[2] == "import":
    import torch
from pytest_tokbudget.evidence.machine import read_machine
machine = read_machine(rootdir=Path(sys.argv[1]))
print(json.dumps([machine.software.torch, machine.software.cuda, "torch" in sys.modules]))
"""


def _in_a_fresh_process(directory: Path, mode: str) -> list[object]:
    done = subprocess.run(
        [sys.executable, "-c", READ, str(directory), mode],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert isinstance(found, list)
    return found


def test_torch_is_not_imported_and_its_versions_are_the_same_if_it_is(tmp_path: Path) -> None:
    torch, cuda, imported = _in_a_fresh_process(tmp_path, "leave")

    assert imported is False
    assert _in_a_fresh_process(tmp_path, "import") == [torch, cuda, True]


def test_software_names_this_package() -> None:
    from pytest_tokbudget import __version__

    assert read_software(None).tokbudget == __version__
