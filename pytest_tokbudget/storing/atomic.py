"""Writing files that are either old or new, never half, also when two processes write."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..errors import StoreError

_TEMP_SUFFIX = ".tokbudget-tmp"
_LOCK_NAME = ".tokbudget-lock"


def write_atomic(path: Path, data: bytes) -> None:
    """Write one file, making its directory; raises StoreError naming the directory."""
    write_all({path: data})


def write_all(files: Mapping[Path, bytes]) -> None:
    """Write all of ``files`` or, where the disk says no, none.

    Every file is first written and synchronized beside its target, and only then are they renamed,
    each atomically (POSIX ``rename``). Raises StoreError naming the directory; the old files then
    are as they were, unless a rename itself failed, in which case the message names what was moved.
    """
    temporary: dict[Path, Path] = {}
    moved: list[Path] = []
    path = Path()
    try:
        for path, data in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary[path] = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_TEMP_SUFFIX}")
            _write_synced(temporary[path], data)
        for path, temp in temporary.items():
            os.replace(temp, path)  # noqa: PTH105 - the name of the guarantee
            moved.append(path)
        for directory in {path.parent for path in files}:
            _sync_directory(directory)
    except OSError as error:
        already = f" (already written: {', '.join(map(str, moved))})" if moved else ""
        raise StoreError(
            f"{path.parent}: cannot write {path.name} there ({error.strerror or error}){already}; "
            "make the directory writable, or name another"
        ) from error
    finally:
        for temp in temporary.values():
            with contextlib.suppress(OSError):
                temp.unlink(missing_ok=True)


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(directory: Path) -> None:
    """Make the renames durable; file systems that cannot synchronize a directory are let off."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def check_writable(directory: Path) -> None:
    """Raise StoreError, naming the directory, unless files can be made in it.

    Really makes one (permission bits tell nothing to root, nor on a read-only mount). A directory
    that does not exist yet is judged by its nearest existing ancestor; nothing is left behind.
    """
    existing = directory
    try:
        while not existing.exists() and existing != existing.parent:
            existing = existing.parent
        probe = existing / f".probe.{secrets.token_hex(4)}{_TEMP_SUFFIX}"
        _write_synced(probe, b"")
        probe.unlink()
    except OSError as error:
        raise StoreError(
            f"{directory}: cannot write there ({error.strerror or error}: {existing}); "
            "make the directory writable, or name another"
        ) from error


def remove_leftovers(directory: Path) -> None:
    """Remove what a killed writer left in ``directory``; call it only while holding its lock."""
    for leftover in directory.glob(f".*{_TEMP_SUFFIX}"):
        leftover.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold ``directory`` against every other process that does the same, waiting for it.

    The kernel lets go of the lock when its holder dies. Raises StoreError.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = _acquire(directory / _LOCK_NAME)
    except OSError as error:
        raise StoreError(
            f"{directory}: cannot lock it ({error.strerror or error}); "
            "make the directory writable, or name another"
        ) from error
    try:
        yield
    finally:
        # Removed while still held: whoever waits on it sees that the name is gone, and tries again.
        with contextlib.suppress(OSError):
            (directory / _LOCK_NAME).unlink()
        os.close(descriptor)


def _acquire(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            held, named = os.fstat(descriptor), os.stat(path)  # noqa: PTH116 - beside fstat
            if (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino):
                return descriptor
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
