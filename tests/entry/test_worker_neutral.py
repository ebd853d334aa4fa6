"""What the controller's arguments must not do a second time in a worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import WorkerProject

PASSES = "def test_it(): pass\n"
FAILS = "def test_it():\n    with open('runs', 'a') as file: file.write('x')\n    assert 0\n"


def _files(project: WorkerProject) -> set[str]:
    return {path.name for path in project.path.iterdir()} - {"__pycache__"}


@pytest.mark.parametrize(
    "args",
    [
        ("--junitxml=made.xml", "--log-file=made.log", "--debug=made.txt"),
        ("-o", "log_file=made.log", "-x", "--maxfail=1", "--durations=3", "-vv", "--color=yes"),
        ("--lf", "--ff", "--nf", "--cache-clear", "--sw", "--sw-skip"),
        ("-p", "xdist", "-n", "2"),
        ("-p", "xdist", "--dist", "load", "--tx", "2*popen"),
        ("-p", "pytest_cov", "--cov=.", "--cov-report=xml:made.xml", "--cov-fail-under=100"),
        ("-p", "pytest_cov", "--no-cov", "--cov=."),
        ("--pdb", "--trace"),
    ],
    ids=" ".join,
)
def test_arguments_that_do_nothing_here(
    worker_project: WorkerProject, args: tuple[str, ...]
) -> None:
    worker_project.write(
        "test_it.py",
        "import sys, threading\n"
        "def test_it(tmp_path):\n"
        "    assert sys.gettrace() is None and sys.getprofile() is None\n"
        "    assert 'coverage' not in sys.modules\n",
    )

    outcome = worker_project.session("test_it.py::test_it", *args)

    assert outcome.result is not None, outcome.failure
    assert outcome.result.status == "passed", outcome.result.longrepr
    assert outcome.exit_status == 0
    assert outcome.log_tail == ""
    assert _files(worker_project) == {"pytest.ini", "test_it.py"}


def test_coverage_from_the_ini_file(worker_project: WorkerProject) -> None:
    worker_project.write("pytest.ini", "[pytest]\naddopts = -p pytest_cov --cov=. --cov-append\n")
    worker_project.write("test_it.py", "import sys\ndef test_it(): assert sys.gettrace() is None\n")

    assert worker_project.result("test_it.py::test_it").status == "passed"
    assert ".coverage" not in _files(worker_project)


def test_the_cache_is_the_users_and_keeps_what_the_controller_noted(
    worker_project: WorkerProject,
) -> None:
    noted = worker_project.write(".pytest_cache/v/cache/lastfailed", '{"a": true}')
    worker_project.write("test_it.py", FAILS)

    result = worker_project.result("test_it.py::test_it", "--lf", "--nf")

    assert result.status == "failed"
    assert noted.read_text() == '{"a": true}'
    assert not (noted.parent / "nodeids").exists()


def test_the_base_directory_of_the_controller_is_not_emptied(
    worker_project: WorkerProject, tmp_path: Path
) -> None:
    base = tmp_path / "base"
    base.mkdir()
    (base / "precious").touch()
    worker_project.write(
        "test_it.py", "def test_it(tmp_path): (tmp_path / 'made').touch(); print(tmp_path)\n"
    )

    first = worker_project.result("test_it.py::test_it", f"--basetemp={base}")
    second = worker_project.result(
        "test_it.py::test_it", f"--basetemp={base}", basetemp=str(base / "sessions")
    )
    third = worker_project.result("test_it.py::test_it", basetemp=str(base / "sessions"))

    assert (base / "precious").exists()
    places = [Path(one.sections[0].text.strip()) for one in (first, second, third)]
    assert len(set(places)) == 3
    assert places[0].is_relative_to(worker_project.scratch)
    for place in places[1:]:
        assert place.is_relative_to(base / "sessions")
        assert (place / "made").exists()


@pytest.mark.parametrize("plugin", ["rerunfailures", "pytest_rerunfailures"])
def test_nothing_is_rerun(worker_project: WorkerProject, plugin: str) -> None:
    worker_project.write("test_it.py", "import pytest\n@pytest.mark.flaky(reruns=2)\n" + FAILS)

    result = worker_project.result("test_it.py::test_it", "-p", plugin, "--reruns", "2")

    assert result.status == "failed"
    assert (worker_project.path / "runs").read_text() == "x"


def test_the_random_seed_is_the_controllers(worker_project: WorkerProject) -> None:
    worker_project.write("test_it.py", "import random\ndef test_it(): print(random.random())\n")

    texts = [
        worker_project.result(
            "test_it.py::test_it", "-p", "randomly", *args, randomly_seed=seed
        ).sections[0].text
        for seed, args in ((7, ()), (7, ()), (8, ()), (None, ("--randomly-seed=7",)))
    ]  # fmt: skip

    assert texts[0] == texts[1] == texts[3] != texts[2]


@pytest.mark.parametrize("method", ["signal", "thread"])
def test_a_time_out_arrives_with_the_stacks(worker_project: WorkerProject, method: str) -> None:
    worker_project.write(
        "test_it.py",
        "import pytest, threading, time\n"
        "def wait_for_a_batch(): threading.Event().wait()\n"
        f"@pytest.mark.timeout(0.2, method={method!r})\n"
        "def test_it():\n"
        "    threading.Thread(target=wait_for_a_batch, daemon=True).start()\n"
        "    while True: time.sleep(.01)\n",
    )

    outcome = worker_project.session("test_it.py::test_it", "-p", "timeout")

    if method == "signal":
        assert outcome.result is not None
        assert "Timeout" in outcome.result.reason
        text = "".join(one.text for one in outcome.result.sections)
    else:
        assert outcome.result is None
        assert "exited with status 1 before it left a result" in outcome.failure
        text = outcome.failure
        assert "in test_it" in text
    assert "Timeout" in text
    assert "in wait_for_a_batch" in text


def test_a_cache_written_by_the_test_itself_is_kept(worker_project: WorkerProject) -> None:
    worker_project.write(
        "test_it.py",
        "def test_it(request):\n"
        "    (request.config.cache.mkdir('tokens') / 'shard0').write_text('1 2 3')\n",
    )

    assert worker_project.result("test_it.py::test_it").status == "passed"
    assert (worker_project.path / ".pytest_cache/d/tokens/shard0").read_text() == "1 2 3"
