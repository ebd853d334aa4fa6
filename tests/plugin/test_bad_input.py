"""Every wrong option or marker: exit 4, the message names it, nothing is written."""

from __future__ import annotations

import json
import re

import pytest

from .conftest import Project

USAGE_ERRORS = [
    (("--tokbudget-refresh", ""), "say why"),
    (("--tokbudget-refresh", "   "), "say why"),
    (("--tokbudget-refresh", "test_it.py"), "test_it.py"),
    (("--tokbudget-refresh", "test_it.py::test_step"), "test_it.py::test_step"),
    (("--tokbudget-refresh", "tests/"), "tests/"),
    (("--tokbudget", "--tokbudget-sessions", "0"), "'0'"),
    (("--tokbudget", "--tokbudget-sessions", "3:1"), "3:1"),
    (("--tokbudget", "--tokbudget-sessions", "many"), "many"),
    (("--tokbudget", "--tokbudget-missing", "ignore"), "ignore"),
    (("--tokbudget", "--tokbudget-inconclusive", "pass"), "pass"),
    (("--tokbudget-refresh", "why", "--tokbudget-append"), "append"),
    (("--tokbudget-refresh", "why", "--tokbudget-missing", "record"), "missing"),
    (("--tokbudget-refresh", "why", "--tokbudget-inprocess"), "inprocess"),
    (("--tokbudget-refresh", "why", "--tokbudget-sessions", "2"), "at least 3"),
    (("--tokbudget", "--tokbudget-native"), "--tokbudget-evidence never"),
    (("--tokbudget", "-n", "2"), "-n 0"),
    (("--tokbudget", "--reruns", "2"), "reruns"),
    (("--tokbudget", "--force-reruns", "2"), "reruns"),
    (("--tokbudget", "--tokbudget-baselines", "pytest.ini"), "pytest.ini"),
    (("--tokbudget", "-o", "tokbudget_report=steps.py"), "'steps.py' is a file"),
    (("--tokbudget", "-o", "tokbudget_native=maybe"), "ini option tokbudget_native"),
    (("-o", "tokbudget=maybe"), "ini option tokbudget:"),
    (
        ("--tokbudget", "--tokbudget-evidence=never", "-o", "tokbudget_evidence=nver"),
        "ini option tokbudget_evidence: 'nver'",
    ),
]


@pytest.mark.parametrize(("args", "expected"), USAGE_ERRORS, ids=lambda value: str(value)[:60])
def test_a_wrong_option_is_a_usage_error(
    project: Project, args: tuple[str, ...], expected: str
) -> None:
    (project.pytester.path / "tests").mkdir()
    project.autoload = "-n" in args or any("reruns" in arg for arg in args)

    result = project.run(*args)

    assert result.ret == 4, result.stdout.str() + result.stderr.str()
    assert expected in result.stderr.str() + result.stdout.str()
    assert not project.baseline_files


WRONG_MARKERS = [
    ("step=3", "step"),
    ("steps=0", "steps"),
    ("steps=2.5", "2.5"),
    ("steps=True", "True"),
    ("warmup=-1", "-1"),
    ("tokens=0", "tokens"),
    ("tolerance='lots'", "lots"),
    ("tolerance='150%'", "150%"),
    ("tolerance=None", "floor"),
    ("floor='14.5X tok/s'", "14.5X"),
    ("floor=-1", "-1"),
    ("ceilings='10%'", "ceilings"),
    ("ceilings={'step_ms.p59': 1}", "step_ms.p95"),
    ("ceilings={'step_ms.p95': '40 GiB'}", "40 GiB"),
    ("token_kind='words'", "words"),
    ("sessions='3:2'", "3:2"),
    ("workload=[1]", "workload"),
    ("workload={'a': object()}", "JSON"),
    ("200", "keywords only"),
]


def test_every_wrong_marker_is_named_with_its_value_at_once(bare_project: Project) -> None:
    tests = [
        f"@pytest.mark.tokbudget({marker})\ndef test_{at}(tokbudget): tokbudget(lambda: 1)\n"
        for at, (marker, _) in enumerate(WRONG_MARKERS)
    ]
    bare_project.write("test_it.py", "import pytest\n" + "".join(tests))

    result = bare_project.run("--tokbudget")

    assert result.ret == 4, result.stdout.str()
    lines = (result.stderr.str() + result.stdout.str()).splitlines()
    for at, (marker, expected) in enumerate(WRONG_MARKERS):
        (line,) = [one for one in lines if f"test_it.py::test_{at}:" in one]
        assert expected in line, marker


def test_a_marker_without_the_fixture_is_a_usage_error(bare_project: Project) -> None:
    bare_project.write(
        "test_it.py", "import pytest\n@pytest.mark.tokbudget(steps=3)\ndef test_step(): pass\n"
    )

    result = bare_project.run("--tokbudget")

    assert result.ret == 4
    assert "does not request" in result.stderr.str() + result.stdout.str()


def test_a_selection_of_nothing_exits_5(project: Project) -> None:
    assert project.run("--tokbudget", "-k", "nothing_like_this").ret == 5


def test_a_run_that_measured_nothing_exits_5(bare_project: Project) -> None:
    bare_project.write("test_it.py", "def test_plain(): pass\n")

    result = bare_project.run("--tokbudget")

    assert result.ret == 5
    result.stdout.fnmatch_lines(["*nothing was measured*"])


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda text: text[: len(text) // 2], "baselines"),
        (lambda text: text.replace('"schema": 1', '"schema": 99'), "schema 99"),
        (lambda text: text.replace('"schema": 1', '"schema": 0'), "never was such a schema"),
        (lambda text: text.replace("test_step", "test_other"), "test_other"),
        (
            lambda text: text.replace(
                '"learned": null', '"learned": {"variance": -1.0, "degrees": 4.0}'
            ),
            "learned.variance is -1.0, expected 0 or more",
        ),
        (
            lambda text: text.replace(
                '"learned": null', '"learned": {"variance": 1.0, "degrees": 4.0}'
            ),
            "learned is a spread, expected null",
        ),
        (
            lambda text: json.dumps({**(whole := json.loads(text)), "anchor": whole["anchor"][:2]}),
            "anchor has 2 of the sessions that a verdict rests on, expected 3 or more",
        ),
        (
            lambda text: re.sub('"usable_cores": [0-9]+', '"usable_cores": 4096', text),
            "anchor[0].usable_cores is 4096, expected",
        ),
        (
            lambda text: re.sub('"tok_s": 256000.0', '"tok_s": 230400.0', text),
            "anchor[0].tok_s is 230400, expected 256000 or more: 25600 tokens in 0.1 s",
        ),
    ],
    ids=[
        "truncated",
        "newer",
        "no-schema",
        "another-test",
        "negative-variance",
        "contradicted-variance",
        "small-anchor",
        "other-cores",
        "lowered-rates",
    ],
)
def test_a_bad_baseline_file_fails_the_test_and_stays(
    project: Project, damage: object, expected: str
) -> None:
    assert callable(damage)
    project.have_baseline()
    (path,) = project.baseline_files
    path.write_text(damage(path.read_text()))
    before = path.read_bytes()

    result = project.run("--tokbudget")

    # A message may be wrapped anywhere.
    shown = " ".join(result.stdout.str().split())
    assert result.ret == 1, result.stdout.str()
    assert expected in shown
    assert "Traceback" not in shown
    assert path.read_bytes() == before


def test_a_baseline_directory_that_cannot_be_written(project: Project) -> None:
    project.write("blocked", "")

    result = project.run("--tokbudget-refresh", "why", "--tokbudget-baselines", "blocked/inside")

    assert result.ret == 4
    assert "blocked" in result.stderr.str() + result.stdout.str()


def test_objects_as_parameters_need_ids(bare_project: Project) -> None:
    bare_project.write(
        "test_it.py",
        "import pytest\n"
        "@pytest.mark.parametrize('cfg', [object(), object()])\n"
        "@pytest.mark.tokbudget(steps=5, warmup=1)\n"
        "def test_step(tokbudget, cfg): tokbudget(lambda: 1)\n",
    )

    result = bare_project.run("--tokbudget")

    assert result.ret != 0
    assert "ids=" in result.stdout.str() + result.stderr.str()
