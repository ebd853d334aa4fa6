"""Files of copies that some process opened, as the kernel tells."""

from __future__ import annotations

import importlib.util
import os
import resource
import shutil
from pathlib import Path

import pytest

from pytest_tokbudget.launching.children import copies_run
from pytest_tokbudget.launching.copies import Copy
from pytest_tokbudget.launching.opened import OpenedFiles
from pytest_tokbudget.launching.programs import Program
from pytest_tokbudget.records.launch import Trees

PROGRAM = Program(command=("git", "status"))


def copy_of(*files: Path, directory: Path | None = None) -> Copy:
    directories = () if directory is None else (str(directory),)
    return Copy("it", "is a copy", "install it editable", frozenset(map(str, files)), directories)


def file_at(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x = 1\n")
    return path


def watched(copy: Copy, tree: str = "/nowhere") -> OpenedFiles:
    return OpenedFiles([copy], [tree], [])


def test_a_module_beside_others(tmp_path: Path) -> None:
    module, other = file_at(tmp_path / "steps.py"), file_at(tmp_path / "other.py")
    copy = copy_of(module)
    files = watched(copy)

    other.read_text()
    assert files.opened() == {}
    module.read_text()
    assert files.opened() == {copy: str(module)}
    # and it stays known
    assert files.opened() == {copy: str(module)}


def test_bytecode_counts_as_its_source(tmp_path: Path) -> None:
    module = file_at(tmp_path / "proj" / "leaf.py")
    bytecode = file_at(Path(importlib.util.cache_from_source(str(module))))
    copy = copy_of(module)
    files = watched(copy)

    bytecode.read_text()

    assert files.opened() == {copy: str(module)}


def test_a_link_to_the_installers_cache(tmp_path: Path) -> None:
    cached = file_at(tmp_path / "cache" / "leaf.py")
    (tmp_path / "site").mkdir()
    link = tmp_path / "site" / "leaf.py"
    link.symlink_to(cached)
    copy = copy_of(link)
    files = watched(copy)

    link.read_text()

    assert files.opened() == {copy: str(cached)}


def test_a_copy_that_records_no_files(tmp_path: Path) -> None:
    deep = file_at(tmp_path / "proj" / "deep" / "leaf.py")
    data = file_at(tmp_path / "proj" / "deep" / "table.txt")
    module = file_at(tmp_path / "proj.py")
    copy = copy_of(directory=tmp_path / "proj")

    for path, expected in ((data, {}), (deep, {copy: str(deep)}), (module, {copy: str(module)})):
        files = watched(copy)
        path.read_text()
        assert files.opened() == expected


def test_the_trees_own_files_are_no_copy(tmp_path: Path) -> None:
    module = file_at(tmp_path / "proj" / "leaf.py")
    files = watched(copy_of(module), str(tmp_path))

    module.read_text()

    assert files.opened() == {}


def test_what_cannot_be_watched_fails_closed_where_a_program_was_started(tmp_path: Path) -> None:
    copy = copy_of(file_at(tmp_path / "steps.py"))
    trees = Trees(head="/head", ref="/ref", side="head", kept=[])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        files = watched(copy)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    (fault,) = copies_run(trees, [PROGRAM], [copy], files)

    assert "may have run a file (none was watched: inotify: Too many open files)" in fault
    assert "started here: git status" in fault
    assert copies_run(trees, [], [copy], files) == []


def test_more_openings_than_the_kernel_keeps_fail_closed(tmp_path: Path) -> None:
    names = [file_at(tmp_path / name) for name in ("one.txt", "other.txt")]
    copy = copy_of(file_at(tmp_path / "steps.py"))
    files = watched(copy)

    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    # The same file twice in a row is one event.
    for index in range(limit + 2):
        os.close(os.open(names[index % 2], os.O_RDONLY))

    assert files.opened() == {}
    assert "more files were opened" in files.failure


@pytest.mark.parametrize("removed", [True, False])
def test_nothing_to_watch(tmp_path: Path, removed: bool) -> None:
    module = file_at(tmp_path / "proj" / "leaf.py")
    if removed:
        shutil.rmtree(module.parent)
        assert watched(copy_of(module)).failure == ""
    else:
        assert OpenedFiles([], [], []).opened() == {}
