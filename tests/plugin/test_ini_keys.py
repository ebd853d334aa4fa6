"""Ini keys without an option of their own: pool, worker arguments, budget defaults."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import Project


def test_a_pool_names_the_machine_class(project: Project, ini: Callable[[str], None]) -> None:
    ini("tokbudget_machine = h200-pool")

    project.have_baseline()

    (path,) = project.baseline_files
    assert path.parent.name == "h200-pool"


def test_worker_args_reach_the_worker_alone(
    bare_project: Project, ini: Callable[[str], None]
) -> None:
    ini("tokbudget_worker_args = --size=8")
    bare_project.write(
        "conftest.py",
        "def pytest_addoption(parser): parser.addoption('--size', default='1')\n",
    )
    bare_project.write(
        "test_it.py",
        "import pytest\n"
        "from steps import step\n"
        "@pytest.mark.tokbudget(steps=8, warmup=1, tolerance=None, floor='1 tok/s')\n"
        "def test_step(tokbudget, request):\n"
        "    assert request.config.getoption('--size') == '8'\n"
        "    tokbudget(step)\n"
        "def test_here(request): assert request.config.getoption('--size') == '1'\n",
    )

    bare_project.run("--tokbudget").assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("lines", "marker", "steps"),
    [
        ("tokbudget_steps = 12", "", 12),
        ("tokbudget_steps = 12", "steps=9, ", 9),
    ],
)
def test_the_marker_overrides_ini(
    bare_project: Project, ini: Callable[[str], None], lines: str, marker: str, steps: int
) -> None:
    ini(lines + "\ntokbudget_warmup = 2\ntokbudget_tolerance = 20%")
    bare_project.write(
        "test_it.py",
        "import pytest\n"
        "from steps import step\n"
        f"@pytest.mark.tokbudget({marker}floor='1 tok/s')\n"
        "def test_step(tokbudget): tokbudget(step)\n",
    )

    bare_project.run("--tokbudget")

    test = bare_project.only_test
    assert (test["steps"], test["warmup_steps"], test["tolerance_pct"]) == (steps, 2, 20)
