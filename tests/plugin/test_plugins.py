"""Other people's plugins beside ours."""

from __future__ import annotations

from .conftest import TEST, Project

FLOOR = "@pytest.mark.tokbudget(steps=8, warmup=1, tolerance=None, floor='1 tok/s')\n"
HEAD = "import pytest, time\nfrom steps import step\n"


def test_timeout_applies_to_one_session_inside_its_worker(among_plugins: Project) -> None:
    among_plugins.write(
        "test_it.py",
        HEAD + FLOOR + "@pytest.mark.timeout(1)\n"
        "def test_hangs(tokbudget):\n"
        "    tokbudget(step)\n"
        "    while True: time.sleep(.01)\n",
    )

    result = among_plugins.run("--tokbudget")

    result.assert_outcomes(failed=1)
    assert "Timeout" in result.stdout.str()
    assert "test_hangs" in result.stdout.str()


def test_timeout_does_not_count_all_sessions_together(among_plugins: Project) -> None:
    among_plugins.write(
        "test_it.py",
        HEAD + "@pytest.mark.timeout(3)\n"
        "@pytest.mark.tokbudget(steps=8, warmup=1, tolerance='50%')\n"
        "def test_step(tokbudget):\n"
        "    tokbudget(step)\n"
        "    time.sleep(1)\n",
    )

    result = among_plugins.run("--tokbudget-refresh", "first", "--tokbudget-sessions", "3")

    result.assert_outcomes(passed=1)


def test_xdist_with_no_or_one_worker(among_plugins: Project) -> None:
    among_plugins.write("test_it.py", TEST)
    among_plugins.have_baseline()

    for count in ("0", "1"):
        result = among_plugins.run("--tokbudget", "-n", count)
        assert result.ret == 0, result.stdout.str()


def test_xdist_without_the_flag_skips(among_plugins: Project) -> None:
    among_plugins.write("test_it.py", TEST)

    result = among_plugins.run("-n", "2")

    result.assert_outcomes(skipped=1)


def test_a_flaky_mark_reruns_nothing(among_plugins: Project) -> None:
    among_plugins.write(
        "test_it.py",
        HEAD + FLOOR + "@pytest.mark.flaky(reruns=3)\n"
        "def test_step(tokbudget):\n"
        "    with open('runs', 'a') as file: print('run', file=file)\n"
        "    tokbudget(step)\n"
        "    assert False\n",
    )

    result = among_plugins.run("--tokbudget")

    result.assert_outcomes(failed=1)
    assert (among_plugins.pytester.path / "runs").read_text().split() == ["run"]


def test_coverage_is_not_attached_in_a_worker(among_plugins: Project) -> None:
    among_plugins.write(
        "test_it.py",
        HEAD + FLOOR + "def test_step(tokbudget):\n"
        "    import sys\n"
        "    assert sys.gettrace() is None\n"
        "    if hasattr(sys, 'monitoring'):\n"
        "        assert sys.monitoring.get_tool(sys.monitoring.COVERAGE_ID) is None\n"
        "    tokbudget(step)\n",
    )

    result = among_plugins.run("--tokbudget", "--cov=steps")

    result.assert_outcomes(passed=1)


def test_randomly_keeps_the_item_and_its_parameters(among_plugins: Project) -> None:
    among_plugins.write(
        "test_it.py",
        HEAD + "@pytest.mark.parametrize('batch', [1, 2, 3])\n" + FLOOR + ""
        "def test_step(tokbudget, batch): tokbudget(step)\n",
    )

    result = among_plugins.pytester.runpytest_subprocess("--tokbudget", "-p", "randomly")

    result.assert_outcomes(passed=3)


def test_last_failed_and_exitfirst(among_plugins: Project) -> None:
    among_plugins.write(
        "test_it.py",
        HEAD
        + FLOOR
        + "def test_a(tokbudget): tokbudget(step); assert False\n"
        + FLOOR
        + "def test_b(tokbudget): tokbudget(step)\n",
    )

    among_plugins.run("--tokbudget", "-x").assert_outcomes(failed=1)
    among_plugins.run("--tokbudget", "--lf").assert_outcomes(failed=1)


def test_xdist_workers_told_by_tx_are_counted(among_plugins: Project) -> None:
    result = among_plugins.run("--tokbudget", "--dist=each", "--tx", "2*popen")

    assert result.ret == 4
    result.stderr.fnmatch_lines(["*-n 2: with --tokbudget the tests would share the device*"])
