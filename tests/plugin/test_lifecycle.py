"""A stranger's first day: skipped, no baseline, refresh, pass, regress, regress again."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from .conftest import Project


def test_without_the_flag_it_is_skipped_before_any_fixture_is_built(bare_project: Project) -> None:
    bare_project.write(
        "test_it.py",
        "import pytest\n"
        "@pytest.fixture(scope='session')\n"
        "def heavy(): raise RuntimeError('built')\n"
        "def test_step(heavy, tokbudget): pass\n",
    )

    result = bare_project.run("-rs")

    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*throughput test: run with --tokbudget*"])


def test_no_baseline_fails_and_says_what_to_type(project: Project) -> None:
    result = project.run("--tokbudget")

    assert result.ret == 1
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*NO_BASELINE*", "*--tokbudget-refresh*"])
    assert project.only_test["outcome"] == "NO_BASELINE"
    assert project.only_test["tok_s"] > 0
    assert not project.baseline_files
    assert list((project.pytester.path / ".tokbudget" / "candidates").rglob("*.json"))


def test_refresh_then_pass_then_regressed_twice(project: Project) -> None:
    project.refresh("first")
    assert project.baseline["log"][-1]["reason"] == "first"
    assert len(project.baseline["anchor"]) == 3
    assert project.only_test["outcome"] == "RECORDED"

    passed = project.run("--tokbudget")
    assert passed.ret == 0, passed.stdout.str()
    passed.stdout.fnmatch_lines(["*PASS*"])
    assert project.only_test["outcome"] in ("PASS", "IMPROVED")

    before = project.baseline_files[0].read_bytes()
    for _ in range(2):
        slow = project.run("--tokbudget", "--junitxml=out.xml", slower=4)
        assert slow.ret == 1
        slow.assert_outcomes(failed=1)
        assert project.only_test["outcome"] == "REGRESSED"
        assert project.only_test["change_pct"] < -50
        suite = ET.parse(project.pytester.path / "out.xml").getroot().find("testsuite")
        assert suite is not None
        assert suite.attrib["failures"] == "1"
        assert suite.attrib["errors"] == "0"
        names = {one.attrib["name"] for one in suite.iter("property")}
        assert any("tok_s" in name for name in names)
    assert project.baseline_files[0].read_bytes() == before


def test_improved_passes_and_asks_for_a_refresh(project: Project) -> None:
    project.have_baseline()

    result = project.run("--tokbudget", slower=0.25)

    assert result.ret == 0
    assert project.only_test["outcome"] == "IMPROVED"
    result.stdout.fnmatch_lines(["*refresh*"])


def test_a_floor_needs_no_baseline(bare_project: Project) -> None:
    bare_project.write(
        "test_it.py",
        "from steps import step\n"
        "import pytest\n"
        "@pytest.mark.tokbudget(steps=20, warmup=1, tolerance=None, floor='60K tok/s')\n"
        "def test_step(tokbudget): tokbudget(step)\n",
    )

    assert bare_project.run("--tokbudget").ret == 0
    slow = bare_project.run("--tokbudget", slower=20)

    assert slow.ret == 1
    assert bare_project.only_test["outcome"] == "REGRESSED"
    assert bare_project.only_test["floor_tok_s"] == 60_000
    assert bare_project.only_test["baseline_tok_s"] is None


def test_a_changed_declaration_is_not_compared(bare_project: Project) -> None:
    text = (
        "from steps import step\n"
        "import pytest\n"
        "@pytest.mark.tokbudget(steps=20, warmup=1, tolerance='30%', workload={'batch': 8})\n"
        "def test_step(tokbudget): tokbudget(step)\n"
    )
    bare_project.write("test_it.py", text)
    bare_project.have_baseline()
    bare_project.write("test_it.py", text.replace("8}", "16}"))

    result = bare_project.run("--tokbudget")

    assert result.ret == 1
    assert bare_project.only_test["outcome"] == "WORKLOAD_CHANGED"
    result.stdout.fnmatch_lines(["*batch*8*16*"])
