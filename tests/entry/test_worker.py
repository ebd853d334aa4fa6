"""A worker runs exactly one item, and how it ended arrives whole."""

from __future__ import annotations

import json

import msgspec
import pytest

from tests.storing.builders import run

from .conftest import WorkerProject

KINDS = """
import pytest

@pytest.fixture(scope="module")
def table(model): return {**model, "module": True}

@pytest.mark.parametrize("batch", [1, 2], ids=["one", "t/w:o"])
def test_parametrized(batch, table): assert batch == 2 and table == {"size": 3, "module": True}

class TestTrainer:
    @pytest.fixture(autouse=True)
    def prepared(self): self.ready = True

    def test_step(self, tmp_path, request):
        assert self.ready and not list(tmp_path.iterdir())
        assert [item.nodeid for item in request.session.items] == [request.node.nodeid]

@pytest.mark.asyncio
async def test_async(model):
    import asyncio
    await asyncio.sleep(0)
    assert model["size"] == 3
"""
CONFTEST = """
import pytest
@pytest.fixture(scope="session")
def model(tmp_path_factory):
    tmp_path_factory.mktemp("model")
    return {"size": 3}
"""


@pytest.mark.parametrize(
    "name", ["test_parametrized[t/w:o]", "TestTrainer::test_step", "test_async"]
)
def test_kinds_of_items(worker_project: WorkerProject, name: str) -> None:
    worker_project.write("tests/conftest.py", CONFTEST)
    worker_project.write("tests/test_kinds.py", KINDS)

    result = worker_project.result(f"tests/test_kinds.py::{name}", "-p", "asyncio", "tests")

    assert (result.status, result.when, result.longrepr) == ("passed", "call", "")
    assert result.duration_s > 0


def test_nothing_else_runs_or_is_imported(worker_project: WorkerProject) -> None:
    worker_project.write("test_other.py", "open('imported', 'w')\ndef test_o(): pass\n")
    worker_project.write(
        "test_it.py",
        "import os, sys\n"
        "def test_before(): open('ran', 'w')\n"
        "def test_it(): assert sys.argv[0] == '/usr/bin/pytest'\n"
        "def test_after(): open('ran', 'w')\n",
    )

    for args in (
        (),
        (".",),
        ("test_other.py", "test_it.py"),
        ("test_other.py::test_o", "test_it.py"),
    ):
        assert worker_project.result("test_it.py::test_it", *args).status == "passed"

    left = {path.name for path in worker_project.path.iterdir()} - {"__pycache__"}
    assert left == {"pytest.ini", "test_it.py", "test_other.py"}


def test_it_stays_whatever_selects_others(worker_project: WorkerProject) -> None:
    """Sharding plugins choose by position in a collection that a worker does not have."""
    worker_project.write(
        "conftest.py",
        "def pytest_collection_modifyitems(config, items):\n"
        "    config.hook.pytest_deselected(items=items[:1])\n"
        "    del items[:1]\n",
    )
    worker_project.write("test_it.py", "def test_a(): pass\ndef test_b(): pass\n")

    assert worker_project.result("test_it.py::test_a").status == "passed"


STATUSES = """
import pytest, unittest

def test_skip(): pytest.skip("no data")
@pytest.fixture
def absent(): pytest.skip("no device")
def test_skip_in_setup(absent): pass
def test_unittest_skip(): raise unittest.SkipTest("not here")
def test_xfail(): pytest.xfail("known")
@pytest.mark.xfail(raises=KeyError)
def test_marked_xfail(): {}["weights"]
@pytest.mark.xfail(strict=True)
def test_strict_xpass(): pass
def test_fail(): pytest.fail("too slow")
def test_exit(): raise SystemExit(3)
@pytest.fixture
def broken(): raise OSError("disk full")
def test_setup(broken): pass
@pytest.fixture
def messy():
    yield
    raise OSError("cannot clean up")
def test_teardown(messy): pass
def test_call_and_teardown(messy): assert 1 + 1 == 3
def test_skip_and_teardown(messy): pytest.skip("no data")
def test_subtests(subtests):
    with subtests.test("skipped"): pytest.skip("no data")
    with subtests.test("good"): pass
def test_subtest_fails(subtests):
    with subtests.test("bad"): assert 2 + 2 == 5
"""


@pytest.mark.parametrize(
    ("name", "status", "when", "words"),
    [
        ("test_skip", "skipped", "call", "no data"),
        ("test_skip_in_setup", "skipped", "setup", "no device"),
        ("test_unittest_skip", "skipped", "call", "not here"),
        ("test_xfail", "xfailed", "call", "known"),
        ("test_marked_xfail", "failed", "call", "KeyError: 'weights'"),
        ("test_strict_xpass", "passed", "call", ""),
        ("test_fail", "failed", "call", "too slow"),
        ("test_exit", "failed", "call", "SystemExit: 3"),
        ("test_setup", "failed", "setup", "OSError: disk full"),
        ("test_teardown", "failed", "teardown", "OSError: cannot clean up"),
        ("test_call_and_teardown", "failed", "call", "AssertionError: assert (1 + 1) == 3"),
        ("test_skip_and_teardown", "failed", "teardown", "OSError: cannot clean up"),
        ("test_subtests", "passed", "call", ""),
        ("test_subtest_fails", "failed", "call", "AssertionError: assert (2 + 2) == 5"),
    ],
)
def test_statuses(
    worker_project: WorkerProject, name: str, status: str, when: str, words: str
) -> None:
    if "subtest" in name and not hasattr(pytest, "Subtests"):
        pytest.skip("this pytest has no subtests")
    worker_project.write("test_it.py", STATUSES)

    result = worker_project.result(f"test_it.py::{name}")

    assert (result.status, result.when) == (status, when)
    assert words in result.reason
    if status == "failed":
        assert words.partition(": ")[2] in result.longrepr
    else:
        assert result.longrepr == ""
    if name == "test_call_and_teardown":
        assert "teardown failed too" in result.longrepr
        assert "cannot clean up" in result.longrepr


def test_the_exception_keeps_its_ancestors(worker_project: WorkerProject) -> None:
    worker_project.write(
        "test_it.py", "class Mine(KeyError): pass\ndef test_it(): raise Mine('x')\n"
    )

    assert worker_project.result("test_it.py::test_it").exception_mro[:4] == [
        "test_it.Mine",
        "builtins.KeyError",
        "builtins.LookupError",
        "builtins.Exception",
    ]


def test_the_text_has_the_style_the_user_asked_for(worker_project: WorkerProject) -> None:
    worker_project.write("test_it.py", "def test_it():\n    width = 7\n    assert width == 8\n")

    long = worker_project.result("test_it.py::test_it").longrepr
    native = worker_project.result("test_it.py::test_it", "--tb=native").longrepr

    assert "    width = 7\n>       assert width == 8" in long
    assert native.startswith("Traceback (most recent call last):")


def test_captured_output_of_all_phases(worker_project: WorkerProject) -> None:
    worker_project.write(
        "test_it.py",
        "import pytest, sys, logging\n"
        "@pytest.fixture\n"
        "def noisy():\n"
        "    print('before')\n"
        "    yield\n"
        "    print('after')\n"
        "def test_it(noisy):\n"
        "    print('to stderr', file=sys.stderr)\n"
        "    logging.getLogger().warning('logged')\n",
    )

    outcome = worker_project.session("test_it.py::test_it", "-v")

    assert outcome.result is not None
    sections = {one.title: one.text for one in outcome.result.sections}
    assert sections["Captured stdout setup"] == "before\n"
    assert sections["Captured stderr call"] == "to stderr\n"
    assert "logged" in sections["Captured log call"]
    assert sections["Captured stdout teardown"] == "after\n"
    assert outcome.log_tail == "", "pytest's own lines are not the worker's output"


def test_output_is_live_without_capture(worker_project: WorkerProject) -> None:
    worker_project.write(
        "test_it.py", "import os\ndef test_it():\n    print('hello')\n    os._exit(0)\n"
    )

    outcome = worker_project.session("test_it.py::test_it", "-s", "-v")

    assert "".join(worker_project.live) == "hello\n"
    assert "exited with status 0 before it left a result" in outcome.failure


def test_a_run_record_is_delivered_and_progress_written(worker_project: WorkerProject) -> None:
    worker_project.write("run.json", msgspec.json.encode(run()).decode())
    worker_project.write(
        "test_it.py",
        "import msgspec, os, pathlib\n"
        "from pytest_tokbudget.entry.worker import WORKER_KEY\n"
        "from pytest_tokbudget.records.run import RunRecord\n"
        "def test_it(request):\n"
        "    worker = request.config.stash[WORKER_KEY]\n"
        "    assert worker.spec.nodeid == request.node.nodeid\n"
        "    assert 'TOKBUDGET_WORKER_SPEC' not in os.environ\n"
        "    worker.progress.slots[2] = 41\n"
        "    data = pathlib.Path('run.json').read_bytes()\n"
        "    worker.deliver(msgspec.json.decode(data, type=RunRecord))\n",
    )

    result = worker_project.result("test_it.py::test_it")

    assert result.status == "passed", result.longrepr
    assert result.run == run()
    assert not result.requested


def test_a_name_that_is_not_found(worker_project: WorkerProject) -> None:
    worker_project.write(
        "test_it.py",
        "import os, pytest\n"
        "@pytest.mark.parametrize('seed', [os.getpid()])\n"
        "def test_it(seed): pass\n",
    )

    result = worker_project.result("test_it.py::test_it[1]")

    assert (result.status, result.when) == ("failed", "collect")
    assert "not deterministic" in result.reason
    assert "Nearest names: test_it.py::test_it[" in result.longrepr


@pytest.mark.parametrize(
    ("test", "conftest", "args", "words"),
    [
        ("import no_such_module\ndef test_it(): pass", "", (), "No module named 'no_such_module'"),
        ("def test_it(): pass", "import no_such_module", (), "No module named 'no_such_module'"),
        ("def test_it(): pass", "", ("-p", "no_such_plugin"), "no_such_plugin"),
        ("def test_it(): pass", "", ("--no-such-option",), "--no-such-option"),
        (
            "def test_it(): pass",
            "def pytest_runtest_setup(item): raise BaseException('in a hook')",
            (),
            "in a hook",
        ),
        (
            "def test_it(): pass",
            "def pytest_runtest_logreport(report): raise RuntimeError('in a hook')",
            (),
            "RuntimeError: in a hook",
        ),
        ("import pytest\ndef test_it(): pytest.exit('enough', 0)", "", (), "enough"),
        ("def test_it(): raise KeyboardInterrupt('mine')", "", (), "KeyboardInterrupt"),
    ],
)
def test_trouble_around_the_item(
    worker_project: WorkerProject, test: str, conftest: str, args: tuple[str, ...], words: str
) -> None:
    worker_project.write("test_it.py", test + "\n")
    worker_project.write("conftest.py", conftest + "\n")

    outcome = worker_project.session("test_it.py::test_it", *args)

    if outcome.result is None:
        assert words in outcome.failure
    else:
        assert outcome.result.status == "failed"
        assert words in outcome.result.longrepr


def test_a_result_stands_when_the_session_never_ends(worker_project: WorkerProject) -> None:
    worker_project.write("conftest.py", "import os\ndef pytest_sessionfinish(): os._exit(0)\n")
    worker_project.write("test_it.py", "def test_it(): assert 1 + 1 == 3\n")

    result = worker_project.result("test_it.py::test_it")

    assert (result.status, "1 + 1" in result.longrepr) == ("failed", True)


def test_a_crash_in_the_item_shows_its_line(worker_project: WorkerProject) -> None:
    worker_project.write(
        "test_it.py",
        "import ctypes\ndef overrun(): ctypes.string_at(0)\ndef test_it(): overrun()\n",
    )

    outcome = worker_project.session("test_it.py::test_it")

    assert outcome.result is None
    for words in ("SIGSEGV", 'test_it.py", line 2 in overrun'):
        assert words in outcome.failure
    assert "test session starts" not in outcome.failure


def test_assertions_are_rewritten_without_a_warning(
    worker_project: WorkerProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our package is imported before pytest can take hold of its import."""
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    worker_project.write("test_it.py", "def test_it(): assert json.dumps([1]) == ''\nimport json\n")

    outcome = worker_project.session(
        "test_it.py::test_it", "-W", "error::pytest.PytestAssertRewriteWarning"
    )

    assert outcome.result is not None, outcome.failure
    assert f"assert {json.dumps([1])!r} == ''" in outcome.result.longrepr
