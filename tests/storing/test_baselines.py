from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_tokbudget.analysis.stats import pool_learned
from pytest_tokbudget.errors import (
    MismatchError,
    NewerSchemaError,
    RefreshRefusedError,
    StoreError,
    UnreadableError,
)
from pytest_tokbudget.ports import BaselineStore
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.baseline import Baseline
from pytest_tokbudget.records.machine import MachineClass
from pytest_tokbudget.records.workload import Workload
from pytest_tokbudget.storing.baselines import MOST_APPENDED, BaselineDirectory
from pytest_tokbudget.storing.codec import encode_baseline
from pytest_tokbudget.storing.refresh import append_sessions, propose_anchor
from pytest_tokbudget.storing.refresh_log import RefreshTerms

from .builders import H200, STEADY, baseline, entry, h200_class, runs, session, sessions, workload

PROJECT = Path(__file__).parents[2]


def _stored(
    root: Path, work: Workload | None = None, machine: MachineClass | None = None
) -> BaselineDirectory:
    """A directory in which one baseline was written."""
    store = BaselineDirectory(root)
    store.replace_anchor(work or workload(), machine or h200_class(), sessions(), entry())
    store.flush()
    return store


def _loaded(
    store: BaselineStore, work: Workload | None = None, machine: MachineClass | None = None
) -> Baseline:
    found = store.load(work or workload(), machine or h200_class())
    assert isinstance(found, Baseline)
    return found


def _absent(store: BaselineStore, work: Workload | None = None, **changes: Any) -> str:
    found = store.load(work or workload(), h200_class(**changes))
    assert isinstance(found, Unavailable)
    return str(found)


def _tree(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def test_nothing_is_written_before_the_flush_and_all_of_it_then(tmp_path: Path) -> None:
    store = BaselineDirectory(tmp_path / "baselines")
    store.replace_anchor(workload(), h200_class(), sessions(), entry("why"))
    assert not (tmp_path / "baselines").exists()

    written = store.flush()

    assert written == [store.path_of(workload(), h200_class())]
    assert _tree(tmp_path / "baselines").keys() == {
        "1x-nvidia-h200-sxm-141gb-700w-amd-epyc-9655-16c/tests-test_train-py-test_step-adfa1cfc.json"
    }
    loaded = _loaded(store)
    assert (loaded.anchor, loaded.log) == (sessions(), [entry("why")])
    assert loaded.token_kind == "real"
    assert store.flush() == []


def test_a_refresh_replaces_the_anchor_and_keeps_what_was_learned(tmp_path: Path) -> None:
    store = _stored(tmp_path)
    store.append(workload(), h200_class(), [session(1002.0, "main")])
    store.flush()
    before = _loaded(store)

    faster = sessions([rate * 1.05 for rate in STEADY], job="new")
    store.replace_anchor(workload(), h200_class(), faster, entry("faster"))
    store.flush()

    after = _loaded(store)
    assert [one.job for one in after.anchor] == ["new"] * 5
    assert after.appended == []
    assert after.learned is not None
    assert after.learned.variance == pytest.approx(pool_learned(before).variance, rel=1e-5)
    assert [one.reason for one in after.log] == ["first", "faster"]
    assert after.log[0] == before.log[0]
    assert after.log[1].old_tok_s == pytest.approx(1000.0, rel=1e-3)
    assert after.log[1].change_pct == pytest.approx(5.0, abs=1e-4)


def test_another_declaration_starts_afresh_but_keeps_the_log(tmp_path: Path) -> None:
    store = _stored(tmp_path)
    changed = workload(declaration={"token_kind": "slots"})

    store.replace_anchor(changed, h200_class(), sessions(), entry("other tokens"))
    store.flush()

    after = _loaded(store, changed)
    assert (after.learned, after.token_kind) == (None, "slots")
    assert [one.reason for one in after.log] == ["first", "other tokens"]
    assert after.log[1].old_tok_s is None


def test_a_baseline_of_another_declaration_is_loaded_for_the_judge_to_see(tmp_path: Path) -> None:
    store = _stored(tmp_path)

    loaded = _loaded(store, workload(declaration={"token_kind": "slots"}))

    assert loaded.workload.declaration == workload().declaration


def test_appending_leaves_the_anchor_and_is_bounded(tmp_path: Path) -> None:
    store = _stored(tmp_path)

    for number in range(MOST_APPENDED + 5):
        store.append(workload(), h200_class(), [session(1000.0 + number, f"job-{number}")])
    store.flush()

    after = _loaded(store)
    assert after.anchor == sessions()
    assert [one.job for one in after.appended] == [
        f"job-{number}" for number in range(5, MOST_APPENDED + 5)
    ]
    assert after.log == [entry()]


def test_there_is_no_appending_without_a_baseline_of_this_workload(tmp_path: Path) -> None:
    store = _stored(tmp_path)

    with pytest.raises(RefreshRefusedError, match=r"no baseline of this workload.*refresh"):
        store.append(workload("test_new"), h200_class(), sessions())
    with pytest.raises(RefreshRefusedError, match="no baseline of this workload"):
        store.append(workload(declaration={}), h200_class(), sessions())
    assert store.flush() == []


def test_what_a_failed_test_queued_can_be_dropped(tmp_path: Path) -> None:
    store = BaselineDirectory(tmp_path)
    store.replace_anchor(workload("test_bad"), h200_class(), sessions(), entry())
    store.replace_anchor(workload("test_good"), h200_class(), sessions(), entry())

    store.discard(workload("test_bad"))

    assert [path.name.rpartition("-")[0] for path in store.flush()] == [
        "tests-test_train-py-test_good"
    ]


def test_writing_again_changes_no_byte(tmp_path: Path) -> None:
    store = _stored(tmp_path)
    path = store.path_of(workload(), h200_class())

    assert encode_baseline(_loaded(store)) == path.read_bytes()


def test_where_nothing_is_the_message_says_where_it_looked_and_what_to_type(
    tmp_path: Path,
) -> None:
    odd = workload(nodeid="tests/test_train.py::test_step[a b]")

    text = _absent(BaselineDirectory(tmp_path / "none"), odd)

    assert f"the directory {tmp_path / 'none'} does not exist" in text
    assert "adfa1cfc.json" in text
    assert "pytest --tokbudget-refresh \"REASON\" 'tests/test_train.py::test_step[a b]'" in text


def test_other_classes_are_listed_with_the_fields_that_differ(tmp_path: Path) -> None:
    store = _stored(tmp_path)
    broken = tmp_path / "broken" / store.path_of(workload(), h200_class()).name
    broken.parent.mkdir()
    broken.write_text("{")
    slow = msgspec.structs.replace(H200, power_limit_w=500.0)

    text = _absent(store, accelerators=[slow], usable_cores=8)

    assert "no baseline for this machine class, 1x-nvidia-h200-sxm-141gb-500w" in text
    assert (
        "other machine classes have one: 1x-nvidia-h200-sxm-141gb-700w-amd-epyc-9655-16c "
        "(power_limit 700 W there, 500 W here, usable_cores 16 there, 8 here)"
    ) in text
    assert "broken (cannot be read" in text


def test_a_class_without_this_test_is_named(tmp_path: Path) -> None:
    (tmp_path / "not-a-class").mkdir()

    text = _absent(_stored(tmp_path), workload("test_new"))

    assert "no machine class has one of this test (there are baselines of others for 1x-" in text
    assert "not-a-class" not in text


def _damaged(tmp_path: Path, data: bytes) -> BaselineDirectory:
    store = _stored(tmp_path)
    store.path_of(workload(), h200_class()).write_bytes(data)
    return store


@pytest.mark.parametrize(
    ("data", "error"),
    [(b'{"schema": 1, "anch', UnreadableError), (b'{"schema": 99}', NewerSchemaError)],
)
def test_a_file_that_cannot_be_read_stops_everything_and_stays(
    tmp_path: Path, data: bytes, error: type[StoreError]
) -> None:
    store = _damaged(tmp_path, data)

    with pytest.raises(error):
        store.load(workload(), h200_class())
    with pytest.raises(error):
        store.replace_anchor(workload(), h200_class(), sessions(), entry())
    with pytest.raises(error):
        store.append(workload(), h200_class(), sessions())
    assert store.path_of(workload(), h200_class()).read_bytes() == data


def test_the_file_of_another_test_is_refused_with_both_names(tmp_path: Path) -> None:
    foreign = encode_baseline(baseline(workload=workload("test_other")))
    store = _damaged(tmp_path, foreign)

    for use in (
        lambda: store.load(workload(), h200_class()),
        lambda: store.replace_anchor(workload(), h200_class(), sessions(), entry()),
        lambda: store.append(workload(), h200_class(), sessions()),
    ):
        with pytest.raises(MismatchError) as caught:
            use()
        assert "tests/test_train.py::test_other" in str(caught.value)
        assert "not to tests/test_train.py::test_step" in str(caught.value)
    assert store.path_of(workload(), h200_class()).read_bytes() == foreign


def _colliding() -> tuple[Workload, Workload]:
    """Two identities with one file name, found by the birthday of their 32-bit hashes.

    Their slugs are equal because of what slugs leave out.
    """
    from pytest_tokbudget.storing.workload_identity import file_name

    seen: dict[str, Workload] = {}
    marks = "!#$%&()*,./:;<=>?@^"
    for number in range(1_000_000):
        digits, rest = "", number
        while rest or not digits:
            rest, place = divmod(rest, len(marks))
            digits += marks[place]
        made = Workload(path="a.py", qualname=f"t{digits}x", nodeid="n")
        other = seen.setdefault(file_name(made), made)
        if other is not made:
            return other, made
    raise AssertionError("no collision among a million hashes of 32 bits")


def test_two_tests_with_one_file_name_are_told_apart(tmp_path: Path) -> None:
    first, second = _colliding()
    store = BaselineDirectory(tmp_path)
    store.replace_anchor(first, h200_class(), sessions(), entry())

    with pytest.raises(MismatchError) as within_one_flush:
        store.replace_anchor(second, h200_class(), sessions(), entry())
    store.flush()
    with pytest.raises(MismatchError) as on_disk:
        BaselineDirectory(tmp_path).load(second, h200_class())

    for caught in (within_one_flush, on_disk):
        assert first.identity in str(caught.value)
        assert second.identity in str(caught.value)
    assert _loaded(store, first).workload == first


def test_a_file_in_the_directory_of_another_class_is_refused(tmp_path: Path) -> None:
    store = _damaged(tmp_path, encode_baseline(baseline(machine_class=h200_class(usable_cores=8))))

    with pytest.raises(MismatchError, match="usable_cores 8 in the file, 16 here"):
        store.load(workload(), h200_class())
    with pytest.raises(MismatchError, match="usable_cores 8 in the file, 16 here"):
        store.replace_anchor(workload(), h200_class(), sessions(), entry())


def test_a_pool_may_mix_hosts_but_not_accelerators(tmp_path: Path) -> None:
    store = _stored(tmp_path, machine=h200_class(pool="night"))

    other_host = h200_class(pool="night", cpu_model="Intel Xeon", usable_cores=8)
    assert _loaded(store, machine=other_host).anchor == sessions()
    slow = msgspec.structs.replace(H200, power_limit_w=500.0)
    text = _absent(store, pool="night", accelerators=[slow])
    assert "pool 'night' held other accelerators then: power_limit 700 W then, 500 W now" in text
    store.replace_anchor(
        workload(), h200_class(pool="night", accelerators=[slow]), sessions(), entry("500 W")
    )
    store.flush()
    upgraded = _loaded(store, machine=h200_class(pool="night", accelerators=[slow]))
    assert upgraded.learned is None
    assert [one.reason for one in upgraded.log] == ["first", "500 W"]


def test_pools_whose_names_make_one_directory_are_told_apart(tmp_path: Path) -> None:
    store = _stored(tmp_path, machine=h200_class(pool="Night 1"))

    with pytest.raises(MismatchError, match="pool Night 1 in the file, night-1 here"):
        store.load(workload(), h200_class(pool="night-1"))


def test_an_unwritable_directory_is_found_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = BaselineDirectory(tmp_path / "file")

    with pytest.raises(StoreError, match=f"^{tmp_path / 'file'}: cannot write there"):
        store.check_writable()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes in spite of permission bits")
def test_an_unwritable_class_directory_is_found_too(tmp_path: Path) -> None:
    store = _stored(tmp_path)
    directory = store.path_of(workload(), h200_class()).parent
    directory.chmod(0o500)

    with pytest.raises(StoreError, match=f"^{directory}: cannot write there"):
        store.check_writable()


def test_a_failing_flush_leaves_every_old_file(tmp_path: Path) -> None:
    store = _stored(tmp_path)
    before = _tree(tmp_path)
    other = h200_class(usable_cores=8)
    (tmp_path / other.slug).write_text("in the way")

    store.append(workload(), h200_class(), [session(999.0)])
    store.replace_anchor(workload("test_other"), h200_class(), sessions(), entry())
    # The way is blocked only after queuing, as when a disk fills up.
    store._pending[tmp_path / other.slug / "x.json"] = store._pending[
        store.path_of(workload("test_other"), h200_class())
    ]
    with pytest.raises(StoreError):
        store.flush()

    assert {**before, other.slug: b"in the way"} == _tree(tmp_path)


FLUSH = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from pytest_tokbudget.storing.baselines import BaselineDirectory
from tests.storing.builders import entry, h200_class, session, sessions, workload
root, _, mode = sys.argv[1:]
store = BaselineDirectory(Path(root))
"""

APPEND = """
for number in range(25):
    store.append(workload(), h200_class(), [session(1000.0 + number, mode)])
    store.flush()
"""

KILLED = """
real = os.replace
def replace(source, target, done=[]):
    if done:
        os.kill(os.getpid(), signal.SIGKILL)
    done.append(1)
    real(source, target)
os.replace = replace
for name in ("test_step", "test_other"):
    store.replace_anchor(workload(name), h200_class(), sessions([500.0] * 3), entry("cut"))
store.flush()
"""


def _process(root: Path, script: str, mode: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", FLUSH + script, str(root), str(PROJECT), mode])


def test_two_processes_that_flush_at_once_lose_nothing(tmp_path: Path) -> None:
    store = _stored(tmp_path)

    both = [_process(tmp_path, APPEND, mode) for mode in ("left", "right")]

    assert [one.wait(60) for one in both] == [0, 0]
    after = _loaded(store)
    for mode in ("left", "right"):
        assert [one.tok_s for one in after.appended if one.job == mode] == [
            1000.0 + number for number in range(25)
        ]
    assert len(_tree(tmp_path)) == 1


def test_a_kill_in_the_middle_of_a_flush_leaves_each_file_old_or_new(tmp_path: Path) -> None:
    store = _stored(tmp_path)
    _stored(tmp_path, workload("test_other"))

    assert _process(tmp_path, KILLED, "").wait(60) == -9

    rates = [
        [one.tok_s for one in _loaded(store, workload(name)).anchor]
        for name in ("test_step", "test_other")
    ]
    assert sorted(map(len, rates)) == [3, 5]
    assert len(_tree(tmp_path)) > 2, "the kill came too late to test anything"
    store.append(workload(), h200_class(), [session(1.0)])
    store.flush()
    assert len(_tree(tmp_path)) == 2


def test_from_runs_to_a_baseline_and_on(tmp_path: Path) -> None:
    store = BaselineDirectory(tmp_path)
    terms = RefreshTerms(reason="first", job="a", today="2026-01-02")
    proposal = propose_anchor(runs(STEADY), old=None, terms=terms)
    store.replace_anchor(workload(), h200_class(), proposal.sessions, proposal.entry)
    store.flush()

    later = RefreshTerms(reason="", job="b", today="2026-01-03")
    store.append(
        workload(),
        h200_class(),
        append_sessions(runs([990.0]), old=_loaded(store), terms=later),
    )
    store.flush()

    after = _loaded(store)
    assert [one.job for one in (*after.anchor, *after.appended)] == ["a"] * 5 + ["b"]
