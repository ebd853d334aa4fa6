from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tokbudget.storing.slugs import slug


@given(st.text(), st.integers(min_value=7, max_value=90))
def test_a_slug_is_safe_short_and_stable(text: str, most: int) -> None:
    made = slug(text, most=most)

    assert re.fullmatch(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?", made)
    assert len(made) <= most
    assert slug(made, most=most) == made


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tests/Test_A.py::test[x-1.5]", "tests-test_a-py-test-x-1-5"),
        ("Xeon Platinum 8480+", "xeon-platinum-8480plus"),
        ("Größe", "groe"),
        ("漢字", "unnamed"),
        ("../..", "unnamed"),
        ("CON", "x-con"),
        ("nul.", "x-nul"),
    ],
)
def test_what_people_write_becomes_readable(text: str, expected: str) -> None:
    assert slug(text) == expected


def test_too_long_a_text_loses_its_beginning() -> None:
    assert slug("a" * 100 + "-test_end[7]", most=12) == "a-test_end-7"
