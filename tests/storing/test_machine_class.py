from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tokbudget.records.machine import Accelerator, Commit
from pytest_tokbudget.storing.machine_class import (
    describe_differences,
    differing_fields,
    machine_class,
)

from .builders import H200, SOFTWARE, machine


def _h200(**changes: Any) -> Accelerator:
    return msgspec.structs.replace(H200, **changes)


@pytest.mark.parametrize(
    ("changes", "slug"),
    [
        ({}, "1x-nvidia-h200-sxm-141gb-700w-amd-epyc-9655-16c"),
        ({"accelerators": [], "cpu_model": "AMD EPYC", "usable_cores": 2}, "cpu-amd-epyc-2c"),
        (
            {"accelerators": [H200, _h200(index=1)]},
            "2x-nvidia-h200-sxm-141gb-700w-amd-epyc-9655-16c",
        ),
        (
            {"accelerators": [_h200(mig_profile="1g.18gb", memory_bytes=16 << 30)]},
            "1x-nvidia-h200-sxm-16gb-mig-1g-18gb-700w-amd-epyc-9655-16c",
        ),
        (
            {"accelerators": [_h200(product="NVIDIA H200 NVL", form_factor="NVL")]},
            "1x-nvidia-h200-nvl-141gb-700w-amd-epyc-9655-16c",
        ),
        (
            {"accelerators": [_h200(form_factor=None, memory_bytes=None, power_limit_w=None)]},
            "1x-nvidia-h200-amd-epyc-9655-16c",
        ),
        (
            {"accelerators": [], "cpu_model": "Intel(R) Xeon(R) CPU @ 2.20GHz"},
            "cpu-intel-xeon-2-20ghz-16c",
        ),
        ({"pool": "Night Pool/7"}, "night-pool-7"),
    ],
)
def test_the_slug_reads_like_the_machine(changes: dict[str, Any], slug: str) -> None:
    assert machine_class(machine(**changes)).slug == slug


@pytest.mark.parametrize(
    "changes",
    [
        {"accelerators": [_h200(memory_bytes=(143_771 - 300) << 20)]},
        {"accelerators": [_h200(uuid="GPU-2", index=5)]},
        {"accelerators": [_h200(power_limit_w=700.2)]},
        {"host_hash": "other", "memory_bytes": 1 << 30},
        {"software": msgspec.structs.replace(SOFTWARE, torch="2.6.0", driver="999")},
        {"commit": Commit(sha="other")},
    ],
)
def test_what_does_not_change_the_speed_does_not_change_the_class(changes: dict[str, Any]) -> None:
    assert machine_class(machine(**changes)) == machine_class(machine())


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"accelerators": [_h200(product="NVIDIA H100 80GB HBM3")]}, "accelerators"),
        ({"accelerators": [_h200(form_factor="NVL")]}, "form_factor"),
        ({"accelerators": [_h200(memory_bytes=80 << 30)]}, "accelerator_memory"),
        ({"accelerators": [H200, H200]}, "accelerator_count"),
        ({"accelerators": [_h200(mig_profile="1g.18gb")]}, "mig_profile"),
        ({"accelerators": [_h200(power_limit_w=500.0)]}, "power_limit"),
        ({"cpu_model": "Intel Xeon"}, "cpu_model"),
        ({"usable_cores": 8}, "usable_cores"),
    ],
)
def test_each_field_is_compared_and_named(changes: dict[str, Any], field: str) -> None:
    here, there = machine_class(machine()), machine_class(machine(**changes))

    assert list(differing_fields(here, there)) == [field]
    assert here.slug != there.slug


def test_a_machine_without_accelerators_differs_in_all_their_fields() -> None:
    found = differing_fields(machine_class(machine()), machine_class(machine(accelerators=[])))

    assert found["accelerators"] == ("NVIDIA H200", "none")
    assert found["power_limit"] == ("700 W", "not recorded")


def test_unlike_accelerators_make_one_class_in_any_order() -> None:
    small = _h200(product="NVIDIA L4", form_factor=None, memory_bytes=23_034 << 20)
    one = machine_class(machine(accelerators=[H200, small, H200]))

    assert one == machine_class(machine(accelerators=[small, H200, H200]))
    assert one.fields["accelerators"] == "NVIDIA H200 + NVIDIA L4"
    assert one.fields["accelerator_count"] == "2 + 1"
    assert one != machine_class(machine(accelerators=[small, small, H200]))


def test_a_class_of_very_many_kinds_keeps_a_name_of_its_own() -> None:
    many = [_h200(product=f"NVIDIA Model {number}") for number in range(9)]
    one, other = (machine_class(machine(accelerators=some)) for some in (many, many[1:]))

    assert one.slug != other.slug
    assert max(len(one.slug), len(other.slug)) <= 120


def test_the_pool_names_the_class_and_keeps_the_hardware() -> None:
    pooled = machine_class(machine(pool="night"))

    assert pooled.fields == machine_class(machine()).fields
    assert differing_fields(pooled, machine_class(machine())) == {"pool": ("night", "")}


def test_differences_are_told_with_both_sides() -> None:
    found = {"power_limit": ("700 W", "500 W"), "pool": ("night", "")}

    text = describe_differences(found, a="there", b="here")

    assert text == "power_limit 700 W there, 500 W here, pool night there, none here"


@given(st.text(), st.integers(1, 512), st.text(min_size=1), st.text())
def test_any_names_make_a_directory_name(cpu: str, cores: int, product: str, pool: str) -> None:
    device = _h200(product=product)

    made = machine_class(
        machine(cpu_model=cpu, usable_cores=cores, accelerators=[device], pool=pool)
    )

    assert 0 < len(made.slug) <= 120
    assert set(made.slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")
