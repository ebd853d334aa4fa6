"""The program that ``busy.json`` is of, as py-spy 0.4.3 wrote it on Linux (x86-64, 2 cores):

    python busy.py &
    py-spy record --native --full-filenames -f speedscope -r 10 -d 5 -p PID -o busy.json

Paths of the home directory and of the build of Python were replaced. What each thread used in these
5 s, from ``/proc/PID/task/*/schedstat``, is in ``test_native_frames.py``.
"""

from __future__ import annotations

import hashlib
import os
import random
import threading
import time
import zlib

DATA = os.urandom(4_000_000)
NUMBERS = [random.random() for _ in range(300_000)]


def compress() -> None:
    while True:
        zlib.compress(DATA, 6)


def digest() -> None:
    while True:
        hashlib.sha256(DATA).digest()


def order() -> None:
    while True:
        sorted(NUMBERS)
        time.sleep(0.2)


def idle() -> None:
    while True:
        time.sleep(0.01)


if __name__ == "__main__":
    named = {'a; (b) "c"': compress, "digest": digest, "order": order, "idle": idle}
    for name, work in (named | {"tokbudget-ours": order}).items():
        threading.Thread(target=work, name=name, daemon=True).start()
    time.sleep(20)
