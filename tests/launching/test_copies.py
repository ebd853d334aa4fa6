"""Which installed distributions are copies of what the two trees of an A/B hold."""

from __future__ import annotations

from importlib.metadata import distributions
from pathlib import Path

import pytest

from pytest_tokbudget.launching.copies import Copies
from pytest_tokbudget.launching.git import tracked_files
from pytest_tokbudget.launching.trees import trees_of
from pytest_tokbudget.launching.worktree import worktree_at

from .ab_repository import Repository

VENDORED = "third_party/packaging/src/packaging/v.py"
TREE = {
    "pyproject.toml": '[project]\nname = "me"\n[[tool.uv.index]]\nname = "torch"\n',
    "third_party/packaging/pyproject.toml": '[project]\nname = "packaging"\n',
    VENDORED: "x = 1\n",
    "me/_vendor/six/__init__.py": "",
    "me/_vendor/__init__.py": "",
    "me/__init__.py": "",
    "python/q/a.py": "",
    "vendor/f.whl": "",
}


@pytest.mark.parametrize(
    ("name", "file", "url", "changed", "why"),
    [
        ("q", "q/a.py", "file:///wheels/q.whl", "a", "holds the files"),
        ("q", "q/a.py", "https://host/q", "a", "holds the files"),
        ("me", "me/_fast.so", "", "a", "is what pyproject.toml declares"),
        ("f", "f/x.py", "file://TREE/vendor/f.whl", "a", "was installed from"),
        ("packaging", "packaging/v.py", "", VENDORED, "is what third_party"),
        ("packaging", "packaging/v.py", "", "a", None),
        ("torch", "torch/a.py", "", "a", None),
        ("six", "six/__init__.py", "https://host/six", "a", None),
        ("flash", "flash/x.py", "file://TREE/wheels/flash.whl", "a", None),
    ],
)
def test_copies(
    tmp_path: Path, name: str, file: str, url: str, changed: str, why: str | None
) -> None:
    repository = Repository(tmp_path / "repo", tmp_path / "site")
    repository.top.mkdir()
    repository.git("init", "-q")
    repository.commit(TREE)
    repository.commit({changed: "changed = 1\n"})
    information = repository.site / f"{name}-1.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Name: {name}\n")
    (information / "RECORD").write_text(f"{file},,\n")
    if url:
        text = f'{{"archive_info": {{}}, "url": "{url.replace("TREE", str(repository.top))}"}}'
        (information / "direct_url.json").write_text(text)

    with worktree_at(repository.ref()) as worktree:
        trees = trees_of(repository.top, worktree, "head")
        tracked = {tree: tracked_files(Path(tree)) for tree in (trees.head, trees.ref)}
        found = list(Copies(trees, tracked).among(distributions(path=[str(repository.site)])))

    assert [one.why.startswith(why or "-") for one in found] == ([True] if why else [])
    assert all(one.holds(str(repository.site / file)) for one in found)
