"""The command survives the shell, however narrow the terminal."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tokbudget.reporting.refresh_command import refresh_command


def test_it_stands_on_one_line_where_it_fits() -> None:
    assert refresh_command("a.py::b", "first baseline", 80) == [
        '  pytest --tokbudget-refresh "first baseline" a.py::b'
    ]


def test_parameters_are_quoted() -> None:
    assert refresh_command("a.py::b[x y]", "why", 80) == [
        "  pytest --tokbudget-refresh \"why\" 'a.py::b[x y]'"
    ]


def test_a_long_node_id_gets_its_own_line() -> None:
    nodeid = "tests/test_throughput.py::test_a_long_name"

    assert refresh_command(nodeid, "why", 50) == [
        '  pytest --tokbudget-refresh "why" \\',
        f"      {nodeid}",
    ]


@given(st.text(st.characters(codec="utf-8", min_codepoint=32), min_size=1))
@pytest.mark.parametrize("width", [40, 80])
def test_a_shell_reads_back_the_same_words(width: int, tail: str) -> None:
    nodeid = f"tests/test_x.py::test_y[{tail}]"

    lines = refresh_command(nodeid, "why the workload changed", width)

    assert max(map(len, lines)) <= width
    # Inside a word a shell drops the backslash and the end of the line; shlex keeps the latter.
    joined = "\n".join(lines).replace("\\\n", "")
    assert shlex.split(joined) == [
        "pytest",
        "--tokbudget-refresh",
        "why the workload changed",
        nodeid,
    ]
