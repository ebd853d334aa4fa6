from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_tokbudget.errors import StoreError
from pytest_tokbudget.storing.atomic import check_writable, locked, write_all, write_atomic


def _names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_a_file_is_made_with_its_directory_and_nothing_else(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a" / "b.json", b"new")

    assert (tmp_path / "a" / "b.json").read_bytes() == b"new"
    assert _names(tmp_path / "a") == {"b.json"}


def test_if_one_file_cannot_be_written_none_is(tmp_path: Path) -> None:
    good = tmp_path / "good" / "a.json"
    write_atomic(good, b"old")
    (tmp_path / "file").write_bytes(b"not a directory")

    with pytest.raises(StoreError, match=r"file: cannot write b\.json there .*make the directory"):
        write_all({good: b"new", tmp_path / "file" / "b.json": b"new"})

    assert good.read_bytes() == b"old"
    assert _names(good.parent) == {"a.json"}


def test_a_rename_that_fails_names_what_was_written(tmp_path: Path) -> None:
    blocked = tmp_path / "b.json"
    (blocked / "full").mkdir(parents=True)

    with pytest.raises(StoreError, match=r"already written: .*a\.json"):
        write_all({tmp_path / "a.json": b"1", blocked: b"2"})

    assert _names(tmp_path) == {"a.json", "b.json"}


def test_an_unwritable_place_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(StoreError, match=r"file/baselines: cannot write there"):
        check_writable(tmp_path / "file" / "baselines")

    check_writable(tmp_path / "new" / "baselines")
    assert _names(tmp_path) == {"file"}


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system that takes none")
def test_a_place_that_takes_no_files_is_refused_even_for_root() -> None:
    with pytest.raises(StoreError, match=r"^/proc/self/baselines: cannot write there"):
        check_writable(Path("/proc/self/baselines"))


COUNT = """
import sys
from pathlib import Path
from pytest_tokbudget.storing.atomic import locked
file = Path(sys.argv[1], "count")
for _ in range(60):
    with locked(Path(sys.argv[1])):
        file.write_text(str(int(file.read_text()) + 1))
"""


def test_processes_that_hold_the_lock_lose_no_update(tmp_path: Path) -> None:
    (tmp_path / "count").write_text("0")

    processes = [subprocess.Popen([sys.executable, "-c", COUNT, str(tmp_path)]) for _ in range(3)]

    assert [one.wait(60) for one in processes] == [0, 0, 0]
    assert (tmp_path / "count").read_text() == "180"
    assert _names(tmp_path) == {"count"}


def test_the_lock_of_a_dead_process_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / ".tokbudget-lock").write_bytes(b"")

    with locked(tmp_path):
        pass

    assert _names(tmp_path) == set()


def test_a_place_that_cannot_be_locked_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(StoreError, match="cannot lock it"), locked(tmp_path / "file"):
        pass
