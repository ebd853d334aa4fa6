"""Tells whether the files of an installed copy were opened, by whatever process: inotify(7)."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterable
from importlib.machinery import all_suffixes
from importlib.util import cache_from_source, source_from_cache

from .copies import Copy
from .trees import in_tree

IN_OPEN = 0x20
IN_Q_OVERFLOW = 0x4000
IN_ISDIR = 0x40000000
"""From ``sys/inotify.h``."""

_EVENT = struct.Struct("iIII")
"""``struct inotify_event``: watch, mask, cookie, length of the name that follows."""


class OpenedFiles:
    """Watches the directories that hold the files of copies.

    A Python that imports a module opens its file or its cached bytecode, whoever started it, with
    whatever path and flags. ``trees`` are the trees whose own files are nobody's copy.
    """

    def __init__(self, copies: Iterable[Copy], trees: Iterable[str], kept: Iterable[str]) -> None:
        """Begin to watch; ``failure`` says why it is not known what was opened, if so."""
        self.failure = ""
        self._trees, self._kept = list(trees), list(kept)
        self._copies = list(copies)
        self._files = {
            spelled: copy
            for copy in self._copies
            for file in copy.files
            for spelled in (file, os.path.realpath(file))
        }
        self._directories: dict[int, str] = {}
        self._opened: dict[Copy, str] = {}
        self._descriptor = -1
        if self._copies:
            self._watch()

    def watches(self, copy: Copy) -> bool:
        """Return whether ``copy`` is among those that were given."""
        return copy in self._copies

    def opened(self) -> dict[Copy, str]:
        """Return the copies of which something was opened, each with the first such file."""
        while self._descriptor >= 0:
            try:
                events = os.read(self._descriptor, 65536)
            except BlockingIOError:
                break
            except OSError as error:
                self.failure = str(error)
                break
            while events:
                watch, mask, _, length = _EVENT.unpack_from(events)
                name = os.fsdecode(events[_EVENT.size : _EVENT.size + length].rstrip(b"\0"))
                events = events[_EVENT.size + length :]
                self._take(watch, mask, name)
        return self._opened

    def _watch(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self._descriptor = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            self.failure = f"inotify: {os.strerror(ctypes.get_errno())}"
            return
        for directory in sorted(self._places()):
            watch = library.inotify_add_watch(self._descriptor, os.fsencode(directory), IN_OPEN)
            if watch < 0:
                self.failure = f"inotify: {directory}: {os.strerror(ctypes.get_errno())}"
                return
            self._directories[watch] = directory

    def _places(self) -> set[str]:
        """Every directory that holds a file of a copy, or bytecode of one."""
        places = {os.path.dirname(one) for one in self._files}  # noqa: PTH120
        for copy in self._copies:
            for top in copy.directories:
                places.add(os.path.dirname(top))  # noqa: PTH120
                places |= _below(top)
        # Bytecode that does not exist yet is written after the source was opened.
        places |= {os.path.dirname(cache_from_source(f"{one}/x.py")) for one in places}  # noqa: PTH120
        return {os.path.realpath(one) for one in places if os.path.isdir(one)}  # noqa: PTH112

    def _take(self, watch: int, mask: int, name: str) -> None:
        if mask & IN_Q_OVERFLOW:
            self.failure = "more files were opened than the kernel keeps events of"
        if not mask & IN_OPEN or mask & IN_ISDIR or not name:
            return
        path = os.path.join(self._directories[watch], name)  # noqa: PTH118
        with contextlib.suppress(ValueError):  # where it is no bytecode
            path = source_from_cache(path)
        if any(in_tree(path, one, self._kept) for one in self._trees):
            return
        copy = self._files.get(path)
        if copy is None and path.endswith(tuple(all_suffixes())):
            copy = next((one for one in self._copies if one.holds(path)), None)
        if copy is not None:
            self._opened.setdefault(copy, path)


def _below(top: str) -> set[str]:
    """The directories below ``top`` that a package may have modules in."""
    found = set()
    for where, names, _ in os.walk(top):
        names[:] = [one for one in names if one.isidentifier()]
        found.add(where)
    return found
