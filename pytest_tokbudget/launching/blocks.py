"""The control channel of an A/B: the controller says who steps, and how many steps.

A Unix socket in the session's directory, one JSON message a line. The worker connects when its
measurement begins and speaks first; then each side waits for the other:

    worker: ready → controller: go → worker: steady (step_ns)
    controller: block (steps) → worker: done (steps, ns), again and again → controller: end

A worker whose workload cannot be held says ``cannot`` instead.
"""

from __future__ import annotations

import os
import select
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import msgspec

from ..errors import MeasureError
from ..records.base import Record

NAME = "blocks"
POLL_S = 0.1
_CREDENTIALS = "iII"
"""``struct ucred``: pid, uid, gid."""


class Message(Record, frozen=True, kw_only=True):
    """One line. ``steps`` made or to make, ``ns`` of stepping (of one step in ``steady``)."""

    kind: str
    steps: int = 0
    ns: int = 0
    reason: str = ""


class _Line:
    """A connected socket that carries messages."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._rest = b""

    def send(self, message: Message) -> None:
        """Send; raises OSError when the other end is gone."""
        self._socket.sendall(msgspec.json.encode(message) + b"\n")

    def receive(self, ended: Callable[[], bool] | None = None) -> Message | None:
        """Wait for a message; ``None`` when the other end closed, or ``ended()`` came true."""
        while b"\n" not in self._rest:
            if ended is not None and not select.select([self._socket], [], [], POLL_S)[0]:
                if ended():
                    return None
                continue
            try:
                received = self._socket.recv(4096)
            except ConnectionError:
                received = b""
            if not received:
                return None
            self._rest += received
        line, _, self._rest = self._rest.partition(b"\n")
        return msgspec.json.decode(line, type=Message)

    def peer_group(self) -> int | None:
        """The process group that the process at the other end leads; ``None`` if it leads none."""
        size = struct.calcsize(_CREDENTIALS)
        given = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        pid = int(struct.unpack(_CREDENTIALS, given)[0])
        try:
            leads = pid != os.getpid() and os.getpgid(pid) == pid
        except ProcessLookupError:
            return None
        return pid if leads else None

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class BlockServer:
    """The controller's end for one worker, listening in ``directory``."""

    def __init__(self, directory: Path) -> None:
        """Listen. Raises OSError."""
        self.path = str(directory / NAME)
        self._listener = socket.socket(socket.AF_UNIX)
        with _ShortName(directory) as name:
            self._listener.bind(name)
        self._listener.listen(1)
        self._line: _Line | None = None
        self._group: int | None = None

    def receive(self, ended: Callable[[], bool]) -> Message | None:
        """The worker's next message; ``None`` when it closed its end, or ``ended()`` came true."""
        while self._line is None:
            if select.select([self._listener], [], [], POLL_S)[0]:
                self._line = _Line(self._listener.accept()[0])
                self._group = self._line.peer_group()
            elif ended():
                return None
        return self._line.receive(ended)

    def send(self, message: Message) -> None:
        """Tell the worker. Raises OSError when it is gone."""
        if self._line is None:
            raise BrokenPipeError("the worker has not connected")
        self._line.send(message)

    @property
    def worker_group(self) -> int | None:
        """The worker's process group while it is connected; ``None`` where it leads none."""
        return self._group

    def close(self) -> None:
        """Break the channel: a worker that waits in it is told so by its end."""
        self._group = None
        self._listener.close()
        if self._line is not None:
            self._line.close()


class BlockClient:
    """The worker's end. Meets ``ports.Pacer``."""

    def __init__(self, path: str) -> None:
        """Connect and say ready. Raises MeasureError when the controller is gone."""
        connection = socket.socket(socket.AF_UNIX)
        try:
            with _ShortName(Path(path).parent) as name:
                connection.connect(name)
        except OSError as error:
            connection.close()
            raise MeasureError(f"the controller of the A/B cannot be reached: {error}") from None
        self._line = _Line(connection)

    def await_warm_up(self) -> None:
        """Say ready; wait for the turn to warm up."""
        self._send(Message(kind="ready"))
        self._receive("go")

    def warmed_up(self, step_ns: int) -> None:
        """Say that the warm-up is over."""
        self._send(Message(kind="steady", ns=step_ns))

    def next_block(self) -> int:
        """Wait for the next block; 0 at the end, and then the channel is closed."""
        message = self._receive("block", "end")
        if message.kind == "end":
            self.close()
        return message.steps

    def block_done(self, steps: int, stepping_ns: int) -> None:
        """Report a block."""
        self._send(Message(kind="done", steps=steps, ns=stepping_ns))

    def cannot(self, reason: str) -> NoReturn:
        """Say that this workload cannot be held; the controller then ends this process."""
        self._send(Message(kind="cannot", reason=reason))
        self._line.receive()
        self.close()
        raise MeasureError(f"the A/B cannot hold this workload: {reason}")

    def close(self) -> None:
        """Close this end: a socket left open would warn in the middle of the author's test."""
        self._line.close()

    def _send(self, message: Message) -> None:
        try:
            self._line.send(message)
        except OSError:
            self.close()
            raise MeasureError(_BROKEN) from None

    def _receive(self, *kinds: str) -> Message:
        message = self._line.receive()
        if message is None or message.kind not in kinds:
            self.close()
            raise MeasureError(_BROKEN)
        return message


_BROKEN = "the A/B was broken off: the other side of the pair ended, or the controller did"


class _ShortName:
    """The socket's name through a descriptor of its directory: it must not exceed 107 bytes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __enter__(self) -> str:
        self._descriptor = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._descriptor}/{NAME}"

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
