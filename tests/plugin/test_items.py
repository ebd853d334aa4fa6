"""Kinds of tests, and how a session's end arrives as the test's own."""

from __future__ import annotations

import pytest

from .conftest import TEST, Project

MARK = "@pytest.mark.tokbudget(steps=8, warmup=1, tolerance=None, floor='1 tok/s')\n"
HEAD = "import pytest\nfrom steps import step\n"


def _run(project: Project, text: str, *args: str) -> pytest.RunResult:
    project.write("test_it.py", HEAD + text)
    return project.run("--tokbudget", *args)


def test_parametrized_and_class_tests(bare_project: Project) -> None:
    result = _run(
        bare_project,
        "class TestTrainer:\n"
        "    @pytest.mark.parametrize('batch', [1, 2])\n"
        f"    {MARK}"
        "    def test_step(self, tokbudget, batch): tokbudget(step)\n",
    )

    result.assert_outcomes(passed=2)
    assert [test["nodeid"] for test in bare_project.run_json["tests"]] == [
        "test_it.py::TestTrainer::test_step[1]",
        "test_it.py::TestTrainer::test_step[2]",
    ]


def test_a_unittest_test_and_the_line_of_a_failure(bare_project: Project) -> None:
    result = _run(
        bare_project,
        "import unittest\n"
        "class TestTrainer(unittest.TestCase):\n"
        "    @pytest.fixture(autouse=True)\n"
        "    def _budget(self, tokbudget): self.tokbudget = tokbudget\n"
        f"    {MARK}"
        "    def test_step(self): self.tokbudget(step)\n"
        f"{MARK}"
        "def test_raises(tokbudget): raise ValueError('no data')\n",
        "--tb=line",
    )

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["test_it.py:9: ValueError: no data"])


def test_async_session_fixture_and_tmp_path(bare_project: Project) -> None:
    bare_project.autoload = True
    bare_project.write(
        "conftest.py",
        "import pytest\n"
        "@pytest.fixture(scope='session')\n"
        "def model(tmp_path_factory): return tmp_path_factory.mktemp('model')\n",
    )
    result = _run(
        bare_project,
        "@pytest.mark.asyncio\n"
        f"{MARK}"
        "async def test_step(model, tmp_path, tokbudget):\n"
        "    assert model.is_dir() and tmp_path.is_dir()\n"
        "    tokbudget(step)\n",
    )

    result.assert_outcomes(passed=1)


def test_a_fixture_may_request_it(bare_project: Project) -> None:
    result = _run(
        bare_project,
        "@pytest.fixture\n"
        "def measured(tokbudget): return tokbudget\n"
        f"{MARK}"
        "def test_step(measured): measured(step)\n",
    )

    result.assert_outcomes(passed=1)


def test_the_body_never_runs_in_the_controller(bare_project: Project) -> None:
    result = _run(
        bare_project,
        "import os\n"
        f"{MARK}"
        "def test_step(tokbudget):\n"
        "    tokbudget(step)\n"
        "    with open('pids', 'a') as file: print(os.getpid(), os.getppid(), file=file)\n"
        "def test_here():\n"
        "    with open('here', 'w') as file: print(os.getpid(), file=file)\n",
    )

    result.assert_outcomes(passed=2)
    pids = (bare_project.pytester.path / "pids").read_text().split()
    assert (bare_project.pytester.path / "here").read_text().strip() not in pids[::2]


def test_output_of_the_worker_is_in_the_report(bare_project: Project) -> None:
    result = _run(
        bare_project,
        f"{MARK}"
        "def test_step(tokbudget):\n"
        "    print('hello from', 'the worker')\n"
        "    tokbudget(step)\n"
        "    assert 1 + 1 == 3\n",
    )

    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["*assert 1 + 1 == 3*", "*Captured stdout call (session 1)*", "hello from the worker"],
        consecutive=False,
    )
    assert bare_project.only_test["outcome"] == "FAILED"


def test_skip_in_the_body_and_by_mark(bare_project: Project) -> None:
    result = _run(
        bare_project,
        "@pytest.mark.skipif(True, reason='by mark')\n"
        "def test_mark(tokbudget): tokbudget(step)\n"
        "def test_body(tokbudget): pytest.skip('by body')\n",
        "-rs",
    )

    result.assert_outcomes(skipped=2)
    assert result.ret == 5
    result.stdout.fnmatch_lines(
        ["*nothing was measured*", "*test_it.py:3: by mark*", "*test_it.py:*by body*"]
    )


def test_xfail_honours_raises(bare_project: Project) -> None:
    result = _run(
        bare_project,
        "@pytest.mark.xfail(raises=ZeroDivisionError, strict=True)\n"
        "def test_right(tokbudget): tokbudget(lambda: 1 // 0)\n"
        "@pytest.mark.xfail(raises=KeyError)\n"
        "def test_wrong(tokbudget): tokbudget(lambda: 1 // 0)\n"
        "def test_imperative(tokbudget): pytest.xfail('known')\n",
    )

    result.assert_outcomes(xfailed=2, failed=1)


XFAIL = TEST.replace("@pytest.mark.tokbudget", "@pytest.mark.xfail(XFAIL)\n@pytest.mark.tokbudget")


@pytest.mark.parametrize(
    ("marked", "slower", "status", "outcomes"),
    [
        ("reason='known'", 3, 0, {"xfailed": 1}),
        ("reason='known', strict=True", 3, 0, {"xfailed": 1}),
        ("reason='known', strict=True", 1, 1, {"failed": 1}),
        ("raises=KeyError", 3, 1, {"failed": 1}),
    ],
    ids=["regressed", "regressed-strict", "passed-strict", "other-raises"],
)
def test_an_expected_failure_is_expected_whatever_the_verdict(
    project: Project, marked: str, slower: float, status: int, outcomes: dict[str, int]
) -> None:
    project.have_baseline()
    project.write("test_it.py", XFAIL.replace("XFAIL", marked))

    result = project.run("--tokbudget", slower=slower)

    assert result.ret == status, result.stdout.str()
    result.assert_outcomes(**outcomes)
    assert project.only_test["outcome"] == ("REGRESSED" if slower > 1 else "PASS")


def test_the_author_can_assert_on_more(bare_project: Project) -> None:
    result = _run(
        bare_project,
        f"{MARK}"
        "def test_step(tokbudget):\n"
        "    measured = tokbudget(step)\n"
        "    assert measured.tok_s > 0 and measured.step_ms.p50 > 0\n"
        "    assert measured.tok_s < 0, 'later assertion'\n",
    )

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*later assertion*"])


BAD_BODIES = [
    ("tokbudget(lambda: None)", "None"),
    ("tokbudget(lambda: 0)", "0"),
    ("tokbudget(lambda: -3)", "-3"),
    ("tokbudget(lambda: 1.5)", "1.5"),
    ("tokbudget(lambda: True)", "True"),
    ("tokbudget(lambda: __import__('torch').tensor(3))", "tensor"),
    ("tokbudget(step, steps=0)", "steps"),
    ("tokbudget(step, stepz=3)", "stepz"),
    ("tokbudget(step())", "callable"),
    ("tokbudget(step, floor='fast')", "fast"),
    ("tokbudget(step); tokbudget(step)", "second measurement"),
    ("tokbudget(step)\n    try: tokbudget(step)\n    except Exception: pass", "second meas"),
    ("pass", "measured nothing"),
    ("raise SystemExit(3)", "SystemExit"),
    ("__import__('os')._exit(3)", "exit"),
    ("__import__('os').kill(__import__('os').getpid(), 9)", "SIGKILL"),
]


def test_every_bad_body_fails_with_a_clear_message(bare_project: Project) -> None:
    tests = [
        f"{MARK}def test_{at}(tokbudget):\n    {body}\n" for at, (body, _) in enumerate(BAD_BODIES)
    ]

    result = _run(bare_project, "".join(tests))

    assert result.ret == 1, result.stdout.str()
    result.assert_outcomes(failed=len(BAD_BODIES))
    reasons = {one["nodeid"]: one["reason"] for one in bare_project.run_json["tests"]}
    for at, (body, expected) in enumerate(BAD_BODIES):
        assert expected in reasons[f"test_it.py::test_{at}"], body


def test_a_step_that_raises_in_the_middle(bare_project: Project) -> None:
    result = _run(
        bare_project,
        "calls = []\n"
        "def broken():\n"
        "    calls.append(1)\n"
        "    if len(calls) == 5: raise OSError('disk full')\n"
        "    return step()\n"
        f"{MARK}"
        "def test_step(tokbudget): tokbudget(broken)\n",
    )

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*disk full*"])


def test_a_worker_thread_that_dies(bare_project: Project) -> None:
    result = _run(
        bare_project,
        "import threading\n"
        "def work(recorder):\n"
        "    with recorder.worker('w0', role='train', counts=True):\n"
        "        for _ in range(6):\n"
        "            step(); recorder.step_end(tokens=4)\n"
        "        raise OSError('the loader died')\n"
        "@pytest.mark.filterwarnings('ignore::pytest.PytestUnhandledThreadExceptionWarning')\n"
        f"{MARK}"
        "def test_step(tokbudget):\n"
        "    threading.Thread(target=work, args=(tokbudget.recorder,)).start()\n"
        "    tokbudget.watch()\n",
    )

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the loader died*"])


def test_watch_measures_a_pipeline(bare_project: Project) -> None:
    result = _run(
        bare_project,
        "import threading\n"
        "def work(recorder, stop):\n"
        "    with recorder.worker('w0', role='train', counts=True):\n"
        "        while not stop.is_set():\n"
        "            step(); recorder.step_end(tokens={'real': 900, 'slots': 1024})\n"
        f"{MARK}"
        "def test_step(tokbudget):\n"
        "    stop = threading.Event()\n"
        "    thread = threading.Thread(target=work, args=(tokbudget.recorder, stop))\n"
        "    thread.start()\n"
        "    try:\n"
        "        tokbudget.watch(steps=20)\n"
        "    finally:\n"
        "        stop.set(); thread.join()\n",
    )

    result.assert_outcomes(passed=1)
    assert bare_project.only_test["token_kind"] == "real"


def test_dynamic_request_is_refused(bare_project: Project) -> None:
    result = _run(bare_project, "def test_step(request): request.getfixturevalue('tokbudget')\n")

    assert result.ret == 1
    result.stdout.fnmatch_lines(["*signature*"])


def test_setup_and_teardown_are_errors_and_a_body_shows_its_own_frames(
    bare_project: Project,
) -> None:
    result = _run(
        bare_project,
        "@pytest.fixture\n"
        "def broken(): raise RuntimeError('no data')\n"
        "@pytest.fixture\n"
        "def leaving():\n"
        "    yield\n"
        "    raise RuntimeError('cannot close')\n"
        f"{MARK}"
        "def test_setup(tokbudget, broken): tokbudget(step)\n"
        f"{MARK}"
        "def test_teardown(tokbudget, leaving): tokbudget(step)\n"
        f"{MARK}"
        "def test_body(tokbudget): tokbudget(lambda: [][1])\n",
        "--junitxml=report.xml",
    )

    result.assert_outcomes(passed=1, failed=1, errors=2)
    result.stdout.fnmatch_lines_random(
        ["*ERROR at setup of test_setup*", "*ERROR at teardown of test_teardown*"]
    )
    assert "loop.py" not in result.stdout.str()
    assert 'errors="2" failures="1"' in (bare_project.pytester.path / "report.xml").read_text()
